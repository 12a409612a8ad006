/** Longer than the promised 24 hours, as for Idempotency-Keys. */
const KEEP_HOURS = 25;
/** Expired rows deleted for each inserted one. More than 1, so the table shrinks without a separate job. */
const EXPIRED_FOR_EACH = 4;

/**
 * Keeps the moment of the first run of a message, $1 api key and $3 message id, and deletes some expired ones. A redelivery finds in `run` the
 * moment that was kept, and so changes nothing that came later. The arguments are SQL.
 */
export const firstRun = (moment: string, from: string) => `
  run AS MATERIALIZED (
    INSERT INTO deletions AS d (api_key, message_id, moment)
    SELECT $1::text, $3::text, ${moment} ${from}
    ON CONFLICT (api_key, message_id) DO UPDATE SET moment = d.moment
    RETURNING moment
  ), expired AS (
    DELETE FROM deletions WHERE (api_key, message_id) IN (
      SELECT api_key, message_id FROM deletions d
      WHERE created_at < now() - interval '${KEEP_HOURS} hours' AND (api_key, message_id) <> ($1::text, $3::text)
      ORDER BY created_at LIMIT ${EXPIRED_FOR_EACH} FOR UPDATE SKIP LOCKED)
  )`;
