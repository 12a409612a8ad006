/** Operations that a redelivery goes on with. */
type Operation = 'delete' | 'update';

/**
 * Keeps the moment of the first run of a message, $1 api key and $3 message id. A redelivery finds in `run` the moment that was kept, and so changes
 * nothing that came later. A publisher may use one message id for both operations, so the kept id begins with the operation. The arguments are SQL.
 */
export const firstRun = (operation: Operation, moment: string, from = '') => `
  run AS MATERIALIZED (
    INSERT INTO deletions AS d (api_key, message_id, moment)
    SELECT $1::text, '${operation} ' || $3::text, ${moment} ${from}
    ON CONFLICT (api_key, message_id) DO UPDATE SET moment = d.moment
    RETURNING moment
  )`;
