/** With fewer recipients, those of a notification are looked up at once. */
const LEAST = 16;
/** Recipients for each of which one block may be read: that takes as long as finding a few of them by their keys. */
const FOR_A_BLOCK = 8;

/** Block of the row of a recipient, found by its key. @param user SQL */
const blockOf = (user: string) => `CASE WHEN many >= ${LEAST} THEN (
      SELECT split_part(ltrim(r.ctid::text, '('), ',', 1)::bigint FROM recipients r WHERE r.organization = n.organization
        AND r.user_id = ${user} AND r."timestamp" = n."timestamp" AND r.notification_id = n.id) END`;

/**
 * CTEs that find the recipients of notifications. The last one is `recipients_found (ctid)`. Recipients are never updated, so a ctid stays valid
 * within the statement.
 *
 * Recipients have no index by notification. One statement stores those of a notification, so they usually lie side by side: the blocks between the
 * first and the last user are read if they are few. When not all are found there, each is looked up by its key. OFFSET 0 keeps each
 * scan separate: a planner that expects many lookups would read all recipients.
 *
 * @param source name of a materialized CTE (organization, id, "timestamp", content)
 * @param before name of one (many) with the numbers of recipients in the snapshot of the statement. Rows that were locked after a wait have
 *   fewer when an erasure has taken some, and the snapshot still shows all. Leave it out when the rows were locked before.
 */
export const recipientsOf = (source: string, before?: string) => `
  named AS MATERIALIZED (
    SELECT *, json_array_length(users) AS many
    FROM (SELECT organization, id, "timestamp", content -> 'notifyUsers' AS users FROM ${source} OFFSET 0) read_once
  ), edges AS MATERIALIZED (
    SELECT n.*, ${blockOf(`n.users -> 0 ->> 'userId'`)} AS first, ${blockOf(`n.users -> -1 ->> 'userId'`)} AS last FROM named n
  ), side_by_side AS MATERIALIZED (
    SELECT e.*, ARRAY(
      SELECT r.ctid FROM (
        SELECT ctid, organization, "timestamp", notification_id FROM recipients
        WHERE ctid >= ('(' || least(e.first, e.last) || ',0)')::tid AND ctid < ('(' || greatest(e.first, e.last) + 1 || ',0)')::tid OFFSET 0
      ) r
      WHERE abs(e.first - e.last) <= e.many / ${FOR_A_BLOCK}
        AND r.organization = e.organization AND r."timestamp" = e."timestamp" AND r.notification_id = e.id
    ) AS ctids FROM edges e
  ), recipients_found AS MATERIALIZED (
    SELECT unnest(ctids) AS ctid FROM side_by_side UNION ALL
    SELECT r.ctid FROM side_by_side s CROSS JOIN LATERAL json_array_elements(s.users) u CROSS JOIN LATERAL (
      SELECT ctid FROM recipients r WHERE r.organization = s.organization
        AND r.user_id = u ->> 'userId' AND r."timestamp" = s."timestamp" AND r.notification_id = s.id OFFSET 0
    ) r WHERE cardinality(s.ctids) < s.many${before ? ` OR (SELECT sum(many) FROM named) <> (SELECT sum(many) FROM ${before})` : ''}
  )`;
