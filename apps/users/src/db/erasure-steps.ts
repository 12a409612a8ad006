import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { EVENT_TYPES } from '@app/contracts/event-types';
import type { ErasureSteps, StepOutcome } from '@app/postgres/retention/erasure-loop';
import { StepSizes } from '@app/postgres/retention/step-sizes';
import { MEMBER_TABLES } from './level';
import { RENEW } from './renew-members.sql';

/** Users of one step, rows of one id that it looks through for them, and memberships deleted from each table by it. */
const MOST_USERS = 100;
const MOST_ROWS = 5000;
const MOST_MEMBERSHIPS = 5000;

interface Erasure {
  id: string;
  api_key: string;
  user_ids: string[];
  organization_ids: string[] | null;
  version: string;
  requested_at: Date;
  at_user_id: string;
  at_organization: string;
  walked_at: Date | null;
  outbox_seq: string | null;
}

interface User {
  organization: string;
  user_id: string;
}

interface FoundUser extends User {
  is_hidden: boolean;
}

/**
 * The start of the oldest transaction of this service. Null, which nothing is older than, while it is not known: a session has `track_activities` off
 * and shows none, or one of another account writes events, as a republication may. The view hides the start of that one, but not its lock.
 */
const OLDEST_TRANSACTION = `
  SELECT CASE WHEN bool_or(state = 'disabled') OR EXISTS (
      SELECT FROM pg_locks JOIN pg_stat_activity other USING (pid)
      WHERE relation = 'outbox'::regclass AND mode = 'RowExclusiveLock' AND other.datname = current_database() AND other.usename <> current_user
    ) THEN NULL ELSE min(xact_start)::text END AS since
  FROM pg_stat_activity WHERE usename = current_user AND datname = current_database()`;

/**
 * The first erasure of the next API key after $2 that can go on. It begins when no transaction runs that began before it: what these add has to be seen.
 * After the last user it waits once more, for those that began before `walked_at`: a republication does not lock users, and while the call was committed
 * one may have begun that does not see it. So all events that may have data of the users have smaller numbers than `outbox_seq`, and the erasure ends
 * when these are published. $1 is the start of the oldest transaction.
 */
const TAKE = `
  SELECT * FROM erasures
  WHERE api_key > $2 AND coalesce(walked_at, requested_at) < $1::timestamptz AND coalesce(outbox_seq <= (SELECT min(seq) FROM outbox), true)
  ORDER BY api_key, id LIMIT 1 FOR UPDATE SKIP LOCKED`;

/**
 * Rows of `wanted` users behind the position ($5, $6), of all tenants, and whether they are of this one and the erasure has hidden them, or may not have
 * seen them because they were not committed. These have versions from the day before its call on, which few rows of other tenants have. The plan does
 * not know the limit, or it would read and sort all rows of a user.
 */
const rowsOf = (wanted: string, most: number) => `
    SELECT u.* FROM ${wanted} CROSS JOIN LATERAL (
      SELECT u.user_id, u.organization, u.left_version >= $4::bigint AS is_hidden,
        (u.left_version >= $4::bigint OR u.version > (SELECT version FROM older)) AND (
          SELECT o.api_key = $1 AND ($3::text[] IS NULL OR o.organization_id = ANY ($3)) FROM organizations o WHERE o.id = u.organization
        ) AS is_found
      FROM users u WHERE u.user_id = wanted.user_id AND (u.user_id, u.organization) > ($5, $6::bigint)
      ORDER BY u.organization LIMIT (SELECT ${most})
    ) u`;

/**
 * The next users that the erasure has hidden, also those who have left again since, and those whom it could not see, in the order of the position. Other
 * tenants may have users with the same ids, in any number of organizations. So few rows of each id are looked through, and more of the first id that has
 * more: up to `looked_to`. $7 is the time of the call.
 */
const NEXT_USERS = `
  WITH older AS MATERIALIZED (
    SELECT coalesce(max(version), -1) AS version FROM version_times WHERE day < ($7::timestamptz AT TIME ZONE 'UTC')::date - 1
  ), looked AS MATERIALIZED (${rowsOf('unnest($2::text[]) AS wanted(user_id)', MOST_USERS)}
  ), wanted AS MATERIALIZED (
    SELECT user_id FROM looked GROUP BY user_id HAVING count(*) = ${MOST_USERS} ORDER BY user_id LIMIT 1
  ), more AS MATERIALIZED (${rowsOf('wanted', MOST_ROWS)}
  ), next AS MATERIALIZED (
    SELECT user_id, organization, is_hidden FROM (
      SELECT * FROM looked WHERE (user_id < (SELECT user_id FROM wanted)) IS NOT FALSE UNION ALL SELECT * FROM more
    ) behind WHERE is_found ORDER BY user_id, organization LIMIT ${MOST_USERS}
  )
  SELECT (SELECT coalesce(json_agg(json_build_object('organization', organization::text, 'user_id', user_id, 'is_hidden', is_hidden)
      ORDER BY user_id, organization), '[]') FROM next) AS users,
    (SELECT json_build_object('organization', max(organization)::text, 'user_id', user_id) FROM more GROUP BY user_id) AS looked_to`;

/** A statement of its own: the next one sees what the holder of such a row has committed. Users are looked up one by one, in this order, here and below. */
const LOCK_USERS = `
  SELECT FROM (SELECT * FROM unnest($1::bigint[], $2::text[]) AS e(organization, user_id) ORDER BY organization, user_id COLLATE "C") e
  CROSS JOIN LATERAL (SELECT FROM users u WHERE u.organization = e.organization AND u.user_id = e.user_id FOR UPDATE) u`;

/** Of hidden users. The rows stay as they are while their user is locked, and so do their ctids. */
const DELETE_MEMBERSHIPS = `
  WITH erased AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::text[]) AS e(organization, user_id)),
  ${MEMBER_TABLES.map(
    (table) => `
  of_${table} AS (
    DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
      SELECT m.ctid FROM erased e CROSS JOIN LATERAL (
        SELECT m.ctid FROM ${table} m WHERE m.organization = e.organization AND m.user_id = e.user_id AND m.added <= $3::bigint OFFSET 0
      ) m LIMIT ${MOST_MEMBERSHIPS}))
    RETURNING 1
  )`,
  ).join()}
  SELECT greatest(${MEMBER_TABLES.map((table) => `(SELECT count(*) FROM of_${table})`).join()}) = ${MOST_MEMBERSHIPS} AS more`;

/** A user who was added again has a membership. */
const DELETE_USERS = `
  DELETE FROM users WHERE ctid = ANY (ARRAY(
    SELECT u.ctid FROM unnest($1::bigint[], $2::text[]) AS e(organization, user_id) CROSS JOIN LATERAL (
      SELECT u.ctid FROM users u WHERE u.organization = e.organization AND u.user_id = e.user_id OFFSET 0
    ) u
    WHERE ${MEMBER_TABLES.map((table) => `NOT EXISTS (SELECT FROM ${table} m WHERE m.organization = e.organization AND m.user_id = e.user_id)`).join('\n      AND ')}))`;

/** All rows are gone. */
const END_WALK = `UPDATE erasures SET walked_at = clock_timestamp() WHERE id = $1`;

/** No transaction runs any more that does not see the erasure. */
const AWAIT_OUTBOX = `UPDATE erasures SET outbox_seq = nextval(pg_get_serial_sequence('outbox', 'seq')) WHERE id = $1`;

const COMPLETE = `
  WITH complete AS (
    DELETE FROM erasures WHERE id = $1 RETURNING *
  )
  INSERT INTO outbox (type, api_key, organization_id, data)
  SELECT '${EVENT_TYPES.userErased}', api_key, api_key, json_strip_nulls(json_build_object(
    'userIds', user_ids, 'organizationIds', organization_ids, 'version', version,
    'upTo', ceil(extract(epoch FROM requested_at) * 1000)::bigint))
  FROM complete`;

/**
 * Erasures of this service: memberships, then users. When no event with their data is left in the outbox, the event `user.erased.v1` orders the
 * notifications service to go on.
 */
export class UsersErasureSteps implements ErasureSteps {
  private readonly logger = new Logger('Erasure');
  /** API key of the last step: API keys take turns. */
  private lastKey = '';
  /** Users of a step, which reads all their memberships: each may have any number. */
  private readonly sizes = new StepSizes(MOST_USERS, 1, MOST_USERS);

  /** @param written called after an event was committed to the outbox */
  constructor(
    private readonly dataSource: DataSource,
    private readonly written: () => void,
  ) {}

  async step(): Promise<StepOutcome> {
    try {
      const { outcome, isWritten, complete } = await this.dataSource.transaction((manager) => this.stepOf(manager));
      if (isWritten) this.written();
      if (complete) this.report(complete);
      return outcome;
    } catch (error) {
      this.sizes.took(this.lastKey, Infinity);
      throw error;
    }
  }

  async oldestSeconds(): Promise<number> {
    const [found] = await this.dataSource.query<{ seconds: number }[]>(
      'SELECT coalesce(extract(epoch FROM clock_timestamp() - min(requested_at)), 0)::float8 AS seconds FROM erasures',
    );
    return found?.seconds ?? 0;
  }

  /** @returns `isWritten`: whether events were written; `complete`: the erasure that has ended */
  private async stepOf(manager: EntityManager): Promise<{ outcome: StepOutcome; isWritten?: boolean; complete?: Erasure }> {
    const erasure = await this.take(manager);
    if (!erasure) return { outcome: (await this.hasOthers(manager)) ? 'waiting' : 'idle' };
    this.lastKey = erasure.api_key;
    if (erasure.outbox_seq === null) return { outcome: 'done', isWritten: await this.eraseSome(manager, erasure) };
    await manager.query(COMPLETE, [erasure.id]);
    return { outcome: 'done', isWritten: true, complete: erasure };
  }

  private report({ id, user_ids: users, requested_at: since }: Erasure): void {
    const seconds = Math.round((Date.now() - since.getTime()) / 1000);
    this.logger.log({ msg: 'an erasure is complete in this service', erasure: id, users: users.length, seconds });
  }

  private async take(manager: EntityManager): Promise<Erasure | undefined> {
    // A statement of its own: the next one sees what those have committed that have ended.
    const [{ since }] = await manager.query<[{ since: string }]>(OLDEST_TRANSACTION);
    const after = (key: string) => manager.query<Erasure[]>(TAKE, [since, key]);
    return (await after(this.lastKey))[0] ?? (await after(''))[0];
  }

  /** Whether there are erasures that wait, or that another process works on. */
  private async hasOthers(manager: EntityManager): Promise<boolean> {
    return (await manager.query<unknown[]>('SELECT FROM erasures LIMIT 1')).length > 0;
  }

  /** @returns whether events were written */
  private async eraseSome(manager: EntityManager, erasure: Erasure): Promise<boolean> {
    const { id, api_key: apiKey, user_ids: userIds, organization_ids: organizationIds, version } = erasure;
    const { at_user_id: atUserId, at_organization: atOrganization, requested_at: since } = erasure;
    const values = [apiKey, userIds, organizationIds, version, atUserId, atOrganization, since];
    const [next] = await manager.query<[{ users: FoundUser[]; looked_to: User | null }]>(NEXT_USERS, values);
    const { users, looked_to: lookedTo } = next;
    const most = this.sizes.of(apiKey);
    const some = users.slice(0, most);
    const last = (users.length < MOST_USERS && some.length === users.length && lookedTo) || some.at(-1);
    if (!last) {
      await manager.query(erasure.walked_at ? AWAIT_OUTBOX : END_WALK, [id]);
      return false;
    }
    // The rest of a step takes as long with one user.
    const begunAt = performance.now();
    const { isUnfinished, written } = await eraseOrRenew(manager, some, version);
    this.sizes.took(apiKey, performance.now() - begunAt, some.length === most);
    if (!isUnfinished)
      await manager.query('UPDATE erasures SET at_user_id = $2, at_organization = $3 WHERE id = $1', [
        id,
        last.user_id,
        last.organization,
      ]);
    return written;
  }
}

/** @returns whether some of their memberships are left, and whether events were written */
async function eraseOrRenew(
  manager: EntityManager,
  users: FoundUser[],
  version: string,
): Promise<{ isUnfinished: boolean; written: boolean }> {
  if (users.length === 0) return { isUnfinished: false, written: false };
  const everyone = keysOf(users);
  const hidden = keysOf(users.filter((user) => user.is_hidden));
  await manager.query(LOCK_USERS, everyone);
  const [{ more }] = await manager.query<[{ more: boolean }]>(DELETE_MEMBERSHIPS, [...hidden, version]);
  if (more) return { isUnfinished: true, written: false };
  await manager.query(DELETE_USERS, hidden);
  const [renewed] = await manager.query<[{ more: boolean; written: boolean }]>(RENEW, [...everyone, version]);
  return { isUnfinished: renewed.more, written: renewed.written };
}

const keysOf = (users: readonly User[]) => [
  users.map(({ organization }) => organization),
  users.map(({ user_id: userId }) => userId),
];
