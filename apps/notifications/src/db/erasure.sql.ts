/** Rows of each table that one statement deletes. */
const MOST_PEOPLE_ROWS = 5000;

/**
 * The first erasure of the next API key after $3 that can go on. At the begin of two stages an erasure waits until everything is visible that the
 * stage must see: what was stored up to the moment of the call, or what was in hand when the last notification was looked at. For the last stage also
 * the events must be published that were stored by then, and $1 milliseconds be over. $2 is the moment up to which everything is visible.
 */
export const TAKE = `
  SELECT * FROM erasures
  WHERE user_ids IS NOT NULL AND api_key > $3 AND (at_organization <> '' OR CASE stage
    WHEN 'people' THEN up_to <= $2::bigint
    WHEN 'people again' THEN walked_at <= clock_timestamp() - $1 * interval '1 ms' AND extract(epoch FROM walked_at) * 1000 <= $2::bigint
      AND coalesce(outbox_seq <= (SELECT min(seq) FROM outbox), true)
    ELSE true END)
  ORDER BY api_key, received_at LIMIT 1 FOR UPDATE SKIP LOCKED`;

export const OLDEST = `
  SELECT coalesce(extract(epoch FROM clock_timestamp() - min(received_at)), 0)::float8 AS seconds
  FROM erasures WHERE user_ids IS NOT NULL`;

/** A repeated event finds its row. $1 id of the event, $2 api key, $3 userIds, $4 organizationIds or null, $5 version, $6 moment. */
export const ORDER = {
  name: 'order-erasure',
  text: `
  WITH ordered AS (
    INSERT INTO erasures (id, api_key, user_ids, organization_ids, version, up_to)
    VALUES ($1::text, $2::text, $3::text[], $4::text[], $5::bigint, $6::bigint) ON CONFLICT DO NOTHING RETURNING id
  )
  INSERT INTO erased_users (api_key, user_hash, erasure)
  SELECT DISTINCT $2::text, sha256(convert_to(u.user_id, 'UTF8')), id FROM ordered, unnest($3::text[]) AS u(user_id)`,
};

/**
 * The next organizations in the order of their ids: $1 api key, $2 organizationIds or null, $3 position, $4 whether the organization at the position
 * is still to be done, $5 their number. `id` is null for one that this service does not know.
 */
export const NEXT_ORGANIZATIONS = `
  SELECT * FROM (
    SELECT o.organization_id AS name, o.id FROM organizations o
    WHERE $2::text[] IS NULL AND o.api_key = $1 AND o.organization_id >= $3 AND (o.organization_id > $3 OR $4)
    ORDER BY o.organization_id LIMIT $5
  ) known
  UNION ALL
  SELECT named.name, (SELECT o.id FROM organizations o WHERE o.api_key = $1 AND o.organization_id = named.name) FROM (
    SELECT n.name COLLATE "C" AS name FROM unnest($2::text[]) AS n(name)
    WHERE n.name COLLATE "C" >= $3 AND (n.name COLLATE "C" > $3 OR $4) ORDER BY 1 LIMIT $5
  ) named
  ORDER BY 1`;

/**
 * Each row is looked up by itself, and OFFSET 0 keeps it so. A ctid replaces a join. The rows that were found are counted: retention may delete some
 * of them at the same time.
 */
const deletion = (table: string, condition: string) => `
  of_${table} AS MATERIALIZED (
    SELECT t.ctid FROM people p CROSS JOIN LATERAL (
      SELECT t.ctid FROM ${table} t WHERE t.organization = p.organization AND t.user_id = p.user_id AND ${condition} OFFSET 0
    ) t LIMIT ${MOST_PEOPLE_ROWS}
  ), from_${table} AS (
    DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM of_${table}))
  )`;

/**
 * Read state and copied memberships: $1 organizations, $2 userIds, $3 moment, $4 version. The copy of a user is incomplete from the first deleted
 * membership on, so that a read asks the users service. Departures go with the last memberships, which would be live without them. A row that is
 * updated meanwhile is left: the second look finds it.
 */
export const DELETE_PEOPLE = `
  WITH people AS MATERIALIZED (
    SELECT o.organization, u.user_id FROM unnest($1::bigint[]) AS o(organization), unnest($2::text[]) AS u(user_id)
  ), ${[
    deletion('complete_members', 'true'),
    deletion('members', 't.added <= $4::bigint AND t.removed <= $4::bigint'),
    deletion('departures', `t.version <= $4::bigint AND (SELECT count(*) FROM of_members) < ${MOST_PEOPLE_ROWS}`),
    deletion('readings', 't."timestamp" <= $3::bigint'),
    deletion('read_marks', 't.read_up_to <= $3::bigint'),
  ].join()}
  SELECT greatest((SELECT count(*) FROM of_members), (SELECT count(*) FROM of_readings)) = ${MOST_PEOPLE_ROWS} AS more`;

/** With more ids one walk over the words of a content is faster than a search for each id: a walk takes 5 µs, a search 0.7 µs. */
const MOST_SEARCHED = 8;

/**
 * How contents are searched for users: for some JSON strings one by one, and for the others in one walk over what is between two quotes. An id with
 * a quote cannot be found by the walk, and one with a brace may be found where no string is.
 */
export function soughtIn(userIds: readonly string[]): { strings: string[]; words: string[] } {
  const strings = userIds.map((userId) => JSON.stringify(userId));
  if (strings.length <= MOST_SEARCHED) return { strings, words: [] };
  const words = strings.map((text) => text.slice(1, -1));
  const isWord = (text: string) => !/["{}]/.test(text);
  return { strings: strings.filter((_, index) => !isWord(words[index])), words: words.filter(isWord) };
}

/**
 * Looks through notifications in the order of their ids: $1 organization, $2 position, $3 most rows, $4 most bytes, $5 strings, $6 moment,
 * $7 words of {@link soughtIn}. `hits` are those whose content has one of the users anywhere as a JSON string.
 */
export const FIND_NOTIFICATIONS = `
  WITH found AS MATERIALIZED (
    SELECT id, "timestamp", size, content FROM notifications WHERE organization = $1::bigint AND id > $2 ORDER BY id LIMIT $3
  ), chosen AS MATERIALIZED (
    SELECT * FROM (SELECT *, sum(size) OVER (ORDER BY id) - size AS before FROM found) sized WHERE before < $4
  )
  SELECT count(*)::int AS rows, coalesce(sum(size), 0)::int AS bytes, max(id) AS last,
    count(*) < (SELECT count(*) FROM found) OR count(*) = $3 AS more,
    coalesce(json_agg(json_build_object('id', id, 'content', content::text)) FILTER (
      WHERE "timestamp" <= $6::bigint AND (
        EXISTS (SELECT FROM unnest($5::text[]) AS q(id) WHERE strpos(content::text, q.id) > 0)
        OR cardinality($7::text[]) > 0
          AND EXISTS (SELECT FROM string_to_table(content::text, '"') AS word WHERE word IN (SELECT unnest($7::text[]))))), '[]') AS hits
  FROM chosen`;

/**
 * Writes contents without the users, and deletes them from the recipients: $1 organization, and of each notification $2 id, $3 content as it was read
 * and $4 without them; $5 userIds. Leaves a notification that has changed since. Locks in the order of the primary key.
 */
export const REWRITE_NOTIFICATIONS = `
  WITH locked AS MATERIALIZED (
    SELECT n.id, n."timestamp", n.content::text AS content FROM notifications n
    WHERE n.organization = $1::bigint AND n.id = ANY ($2::text[]) ORDER BY n.id FOR UPDATE
  ), same AS MATERIALIZED (
    SELECT l.id, l."timestamp", h.next FROM locked l JOIN unnest($2::text[], $3::text[], $4::text[]) AS h(id, content, next)
      ON h.id = l.id AND h.content = l.content
  ), recipients_deleted AS (
    DELETE FROM recipients WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM same s CROSS JOIN unnest($5::text[]) AS u(user_id) CROSS JOIN LATERAL (
        SELECT r.ctid FROM recipients r WHERE r.organization = $1::bigint
          AND r.user_id = u.user_id AND r."timestamp" = s."timestamp" AND r.notification_id = s.id OFFSET 0
      ) r))
  ), rewritten AS (
    UPDATE notifications n SET content = s.next::json, size = octet_length(s.next)
    FROM same s WHERE n.organization = $1::bigint AND n.id = s.id AND n.id = ANY ($2::text[])
  )
  SELECT count(*)::int AS count FROM same`;

export const MOVE = `
  UPDATE erasures SET stage = $2, at_organization = $3, at_notification = $4 WHERE id = $1`;

/** The last notification was looked at. A relay may still publish what it has read before. */
export const END_WALK = `
  UPDATE erasures SET stage = 'people again', at_organization = '', at_notification = NULL,
    walked_at = clock_timestamp(), outbox_seq = nextval(pg_get_serial_sequence('outbox', 'seq'))
  WHERE id = $1`;

/** $1 id, $2 api key, $3 id, $4 type and $5 data of the event. */
export const COMPLETE = `
  WITH complete AS (UPDATE erasures SET user_ids = NULL, at_organization = '' WHERE id = $1)
  INSERT INTO outbox (id, api_key, type, body) VALUES ($3, $2, $4, $5::json) RETURNING seq, occurred_at`;
