import { Client, type ClientBase } from 'pg';
import { databaseServers } from '@app/runtime/settings/database-url';
import { DatabaseServers } from '../connections/database-servers';
import { errorsOf, sqlState } from '../errors';
import type { TlsClientConfig } from '../connections/tls-client';
import { WritableClient } from '../connections/writable-client';
import { scramVerifier } from './scram-verifier';

/** One difference between the database and what a service needs, with the statement that removes it. */
interface Difference {
  statement: string;
  /** The same without the password, for an error. */
  printable: string;
}

const DENIED = '42501';
const WRONG_PASSWORD = '28P01';
/** feature_not_supported, and a wrong value: what extensions for passwords answer. */
const REFUSED_PASSWORD = /^(0A000|22)/;

const NOT_ALLOWED = 'the account in DATABASE_URL may not make all changes';

/** The account of set-up may not make all changes. The message lists the statements for a database administrator, without passwords. */
export class MissingRights extends Error {
  /** @param reason why they could not be made, as the beginning of a sentence */
  constructor(statements: readonly string[], reason = NOT_ALLOWED) {
    super(
      `${reason}. Let a database administrator run this in the same database, then repeat the set-up:\n${statements
        .map((statement) => `  ${statement};`)
        .join('\n')}`,
    );
  }
}

/** The role of a service, from its connection string. */
export interface ServiceRole {
  name: string;
  /** Empty when the server identifies the role by something else. */
  password: string;
  url: string;
  /** Settings of a connection as this role, such as TLS. */
  connection: TlsClientConfig;
}

/**
 * @returns undefined when the service has no role of its own
 * @throws Error when the service would look for its schema in another database
 */
export function serviceRoleOf(
  serviceUrl: string | undefined,
  adminUrl: string,
  connection: TlsClientConfig,
): ServiceRole | undefined {
  if (!serviceUrl) return undefined;
  const [own, admin] = [serviceUrl, adminUrl].map((url) => new URL(databaseServers(url)[0] ?? ''));
  const [name, password] = [decoded(own.username), decoded(own.password)];
  // The driver knows which database a URL without its name leads to.
  const databaseOf = ({ href }: URL) => new Client({ connectionString: href }).database;
  if (databaseOf(own) !== databaseOf(admin)) throw new Error('the URL of the service names another database than DATABASE_URL');
  return own.username === admin.username ? undefined : { name, password, url: serviceUrl, connection };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('the URL of the service has a % in user or password that is not written as %25');
  }
}

/**
 * Makes the changes that are still necessary, and no others: an account without the right to a change that somebody else has made can run set-up.
 *
 * @param find differences between the database and what is needed
 * @throws MissingRights when some changes are left
 */
export async function change(client: ClientBase, find: () => Promise<Difference[]>): Promise<void> {
  const denied: string[] = [];
  let reason: string | undefined;
  for (const { statement, printable } of await find()) {
    try {
      await client.query(statement);
    } catch (error) {
      const code = sqlState(error);
      const isDenied = code === DENIED;
      // A server that checks the strength of passwords may take them as plain text only, and no verifier.
      const isPasswordRefused = statement !== printable && REFUSED_PASSWORD.test(code);
      if (!isDenied && !isPasswordRefused) throw error;
      if (isPasswordRefused) reason = `the server refuses the verifier of a password (${code})`;
      denied.push(printable);
    }
  }
  if (denied.length > 0) throw new MissingRights(denied, reason);
  // PostgreSQL only warns when the account may grant nothing.
  const left = await find();
  if (left.length > 0) throw new MissingRights(left.map(({ printable }) => printable));
}

/** The schema and the role that do not exist yet, and a role that cannot log in with its password. */
export async function missingRoleAndSchema(client: ClientBase, schema: string, role?: ServiceRole): Promise<Difference[]> {
  const differences: Difference[] = [];
  const add = (statement: string, printable = statement) => differences.push({ statement, printable });
  const schemas = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema]);
  if (schemas.rowCount === 0) add(`CREATE SCHEMA ${client.escapeIdentifier(schema)}`);
  if (!role) return differences;

  const name = client.escapeIdentifier(role.name);
  const { rows } = await client.query<{ login: boolean }>('SELECT rolcanlogin AS login FROM pg_roles WHERE rolname = $1', [
    role.name,
  ]);
  const password = role.password && ` PASSWORD '${scramVerifier(role.password)}'`;
  const placeholder = role.password && ` PASSWORD '<the password in the URL of the service>'`;
  if (!rows[0]) add(`CREATE ROLE ${name} LOGIN${password}`, `CREATE ROLE ${name} LOGIN${placeholder}`);
  else if (!rows[0].login) add(`ALTER ROLE ${name} LOGIN${password}`, `ALTER ROLE ${name} LOGIN${placeholder}`);
  else if (role.password && (await isPasswordWrong(role)))
    add(`ALTER ROLE ${name}${password}`, `ALTER ROLE ${name}${placeholder}`);
  return differences;
}

/** Other failures, such as a network that only the services may use, say nothing about the password. */
async function isPasswordWrong({ url, connection }: ServiceRole): Promise<boolean> {
  const servers = new DatabaseServers(url);
  try {
    const client = await servers.first(() => new WritableClient({ ...connection, servers }).connect());
    await client.end();
    return false;
  } catch (error) {
    return errorsOf(error).some((one) => sqlState(one) === WRONG_PASSWORD);
  }
}

/**
 * Access of the role to the rows of its own schema, and nothing else: it owns no table and cannot alter one.
 *
 * @param undeletable tables of which it may delete no rows
 */
export async function missingPrivileges(
  client: ClientBase,
  schema: string,
  role: Pick<ServiceRole, 'name'>,
  undeletable: readonly string[],
): Promise<Difference[]> {
  const { rows } = await client.query<{ statement: string }>(PRIVILEGES, [schema, role.name, undeletable]);
  return rows.map(({ statement }) => ({ statement, printable: statement }));
}

/** Migrations are written by set-up alone. A right that the role has through another role or as a superuser counts as granted. */
const PRIVILEGES = `
  WITH own AS (SELECT oid FROM pg_namespace WHERE nspname = $1)
  SELECT format('GRANT USAGE ON SCHEMA %I TO %I', $1::text, $2::text) AS statement
  WHERE NOT has_schema_privilege($2, $1, 'USAGE')
  UNION ALL
  SELECT format('GRANT %s ON %I.%I TO %I', string_agg(privilege, ', '), $1, relname, $2)
  FROM own, pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
  WHERE relnamespace = own.oid AND relkind IN ('r', 'p', 'v')
    AND (privilege = 'SELECT' OR relname <> 'migrations') AND NOT (privilege = 'DELETE' AND relname = ANY ($3::text[]))
    AND NOT has_table_privilege($2, pg_class.oid, privilege)
  GROUP BY relname
  UNION ALL
  SELECT format('REVOKE %s ON %I.%I FROM %I', string_agg(privilege_type, ', '), $1, relname, $2)
  FROM own, pg_class, aclexplode(relacl) AS granted
  WHERE relnamespace = own.oid AND grantee = (SELECT oid FROM pg_roles WHERE rolname = $2)
    AND (relname = 'migrations' AND privilege_type <> 'SELECT' OR relname = ANY ($3::text[]) AND privilege_type = 'DELETE')
  GROUP BY relname
  UNION ALL
  SELECT format('GRANT USAGE ON SEQUENCE %I.%I TO %I', $1, relname, $2)
  FROM own, pg_sequence JOIN pg_class ON pg_class.oid = seqrelid
  WHERE relnamespace = own.oid AND NOT has_sequence_privilege($2, seqrelid, 'USAGE')`;
