import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { NOT_COMPILED } from '@app/postgres/connections/data-source';
import { DatabaseServers } from '@app/postgres/connections/database-servers';
import { UnlimitedClient } from '@app/postgres/connections/unlimited-client';
import { reasonOf, sqlState } from '@app/postgres/errors';
import { errorInWork } from '@app/postgres/tool';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { SCHEMAS } from './tables';

/** The tenant is not in a state that allows the work. The message is for the operator. */
export class TenantObstacle extends Error {}

/** The cost of a tenant follows its own size, and not that of the tables. Plans without an index are not compiled, as in the services. */
const PLANS = { ...NOT_COMPILED, enable_seqscan: 'off' };

const NO_TABLE = '42P01';

/**
 * Connects to the server that accepts writes, for the time of the work, which may be hours.
 *
 * @param variable that has the URL, for the operator
 * @throws TenantObstacle when it cannot connect; an error of the work for databaseProblem()
 */
export async function onServer<T>(
  variable: string,
  { url, tlsFiles }: { url: string; tlsFiles: TlsFiles },
  work: (client: ClientBase) => Promise<T>,
): Promise<T> {
  // As for other tools: stdout belongs to the result.
  Logger.overrideLogger(false);
  const servers = new DatabaseServers(url);
  const connect = () => new UnlimitedClient({ servers, tlsFiles, application_name: 'tenants', parameters: PLANS }).connect();
  const client = await servers.first(connect).catch((error: unknown) => {
    throw new TenantObstacle(`The database of ${variable} cannot be used (${reasonOf(error)}).`, { cause: error });
  });
  try {
    return await work(client);
  } catch (error) {
    throw error instanceof TenantObstacle ? error : errorInWork(error);
  } finally {
    await client.end();
  }
}

/**
 * @param removed whether the key may have been removed already, and something of it has come to notifications since then
 * @throws TenantObstacle unless nobody writes for the tenant any more
 */
export async function requireQuiet(client: ClientBase, apiKey: string, removed = false): Promise<void> {
  const { rows } = await client.query<{ disabled: boolean }>(
    `SELECT disabled_at IS NOT NULL AS disabled FROM users.api_keys WHERE key = $1
     ${removed ? LATE : ''}
     ORDER BY disabled LIMIT 1`,
    [apiKey],
  );
  if (!rows[0]) throw new TenantObstacle(`There is no API key ${apiKey}. See npm run keys -- list.`);
  if (!rows[0].disabled)
    throw new TenantObstacle(`API key ${apiKey} is enabled. Stop its publishers, and run npm run keys -- disable ${apiKey}`);
  const { rows: left } = await client.query<{ what: string }>(removed ? UNFINISHED : `${UNFINISHED} ${ON_THEIR_WAY}`, [apiKey]);
  if (left.length > 0)
    throw new TenantObstacle(
      `Not everything is done for this API key: ${left.map(({ what }) => what).join(', ')}. Try again later.`,
    );
}

/** Rows of events that came after the removal of the key. */
const LATE = `
  UNION ALL SELECT true FROM notifications.organizations WHERE api_key = $1
  UNION ALL SELECT true FROM notifications.erasures WHERE api_key = $1`;

const UNFINISHED = `
  SELECT 'events of users not published: ' || count(*) AS what FROM users.outbox WHERE api_key = $1 HAVING count(*) > 0
  UNION ALL
  SELECT 'events of notifications not published: ' || count(*) FROM notifications.outbox b
  WHERE b.api_key = $1 OR b.organization IN (SELECT id FROM notifications.organizations WHERE api_key = $1) HAVING count(*) > 0
  UNION ALL
  SELECT 'erasures under way in users: ' || count(*) FROM users.erasures WHERE api_key = $1 HAVING count(*) > 0
  UNION ALL
  SELECT 'erasures under way in notifications: ' || count(*) FROM notifications.erasures
  WHERE api_key = $1 AND user_ids IS NOT NULL HAVING count(*) > 0`;

/**
 * Events that are published, and that notifications has not received: another installation would never have them. Each erasure of the last day has
 * the key of its answer.
 */
const ON_THEIR_WAY = `
  UNION ALL
  SELECT 'changes of documents not in notifications yet: ' || count(*) FROM users.documents d JOIN users.organizations o ON o.id = d.organization
  WHERE o.api_key = $1 AND d.version > 0 AND NOT EXISTS (
    SELECT FROM notifications.organizations n JOIN notifications.document_access a ON a.organization = n.id
    WHERE n.api_key = $1 AND n.organization_id = o.organization_id AND a.document_id = d.document_id AND a.version >= d.version)
  HAVING count(*) > 0
  UNION ALL
  SELECT 'erasures not in notifications yet: ' || (begun - arrived) FROM (
    SELECT count(*) AS begun, extract(epoch FROM min(created_at)) * 1000 AS since FROM users.idempotency_keys
    WHERE api_key = $1 AND operation LIKE 'users.erase%' AND created_at > now() - interval '1 day'
  ) keys CROSS JOIN LATERAL (
    SELECT count(*) AS arrived FROM notifications.erasures WHERE api_key = $1 AND up_to >= since
  ) orders WHERE begun > arrived`;

/** The names of the migrations that have run, none before set-up: two databases with the same ones have the same tables. */
export async function migrationsOf(client: ClientBase): Promise<string> {
  const names = SCHEMAS.map((schema) => `SELECT '${schema} ' || name AS name FROM ${schema}.migrations`);
  const { rows } = await client
    .query<{ names: string }>(`SELECT string_agg(name, ', ' ORDER BY name) AS names FROM (${names.join(' UNION ALL ')}) m`)
    .catch((error: unknown) => {
      if (sqlState(error) === NO_TABLE) return { rows: [] };
      throw error;
    });
  return rows[0]?.names ?? '';
}
