/** All statements about the read state of a user have $1 api key, $2 organization and $3 user. Without the organization there is no row. */
export const WHO = `
  who AS MATERIALIZED (
    SELECT organization, coalesce((m).read_up_to, -1) AS mark, coalesce((m).asked, -1) AS asked FROM (
      SELECT o.id AS organization, (SELECT m FROM read_marks m WHERE m.organization = o.id AND m.user_id = $3::text) AS m
      FROM organizations o WHERE o.api_key = $1::text AND o.organization_id = $2::text OFFSET 0
    ) found
  )`;

export const ORGANIZATION = '(SELECT organization FROM who)';
export const MARK = '(SELECT mark FROM who)';
export const USER = '$3::text';

/**
 * Whether the user has read the notification with the `timestamp` and the id of an alias. "unread" is void once a later call has marked everything
 * up to a moment. Scalar subqueries here and below: a join would be planned for all rows of the user. The comparison of rows follows from the lines
 * before it. Only the primary key has it as a condition: without statistics "readings_by_age" would cost the same, and reads all users of a time.
 */
export const isRead = (of: string, id = 'id') => `
  coalesce((SELECT CASE WHEN r.read THEN true WHEN r.asked = (SELECT asked FROM who) THEN false END FROM readings r
    WHERE r.organization = ${ORGANIZATION} AND r.user_id = $3::text AND r."timestamp" = ${of}."timestamp" AND r.notification_id = ${of}.${id}
      AND (r.user_id, r."timestamp") >= ($3::text, ${of}."timestamp")),
    ${of}."timestamp" <= ${MARK})`;
