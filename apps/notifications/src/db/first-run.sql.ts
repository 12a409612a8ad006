/** Operations that a redelivery goes on with. */
type Operation = 'delete' | 'update';

/** A publisher may use one message id for both operations, so the kept id begins with the operation. @param messageId SQL */
export const keptId = (operation: Operation, messageId: string) => `'${operation} ' || ${messageId}::text`;

/**
 * Keeps the moment of the first run of a message, of the api key $1. A redelivery finds in `run` the moment that was kept, and so changes nothing
 * that came later. The arguments are SQL.
 */
export const firstRun = (operation: Operation, messageId: string, moment: string, from: string) => `
  run AS MATERIALIZED (
    INSERT INTO deletions AS d (api_key, message_id, moment)
    SELECT $1::text, ${keptId(operation, messageId)}, ${moment} ${from}
    ON CONFLICT (api_key, message_id) DO UPDATE SET moment = d.moment
    RETURNING moment
  )`;
