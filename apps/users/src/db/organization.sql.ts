import { EVENT_TYPES } from '@app/contracts/event-types';

/**
 * The beginning of every statement that changes something in an organization: parameters 1 api key, 2 organizationId; its number is in
 * `organization (id)`, and it is made, and told of, when it is missing. There is no row, and nothing happens, when
 * - the statement starts so late that it may end more than half a second after the deadline (the other half is for the caller's clock;
 *   how long it may run is its own statement_timeout),
 * - another transaction creates the organization at this moment: it is invisible to this statement, and there to the next one.
 *
 * @param deadline number of the parameter with the deadline, in epoch milliseconds or null
 * @param condition what else has to hold, such as `AND …`
 */
export const organizationCte = (deadline: number, condition = '') => `
  WITH admitted AS MATERIALIZED (
    SELECT WHERE ($${deadline}::bigint IS NULL
        OR clock_timestamp() + current_setting('statement_timeout')::interval
          <= to_timestamp($${deadline} / 1000.0) + interval '500 ms')
      ${condition}
  ), known AS MATERIALIZED (
    SELECT o.id FROM admitted, organizations o WHERE o.api_key = $1::text AND o.organization_id = $2::text
  ), created AS (
    INSERT INTO organizations (api_key, organization_id)
    SELECT $1::text, $2::text FROM admitted WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT DO NOTHING
    RETURNING id
  ), organization_created AS (
    INSERT INTO outbox (type, api_key, organization_id, data)
    SELECT '${EVENT_TYPES.organizationCreated}', $1::text, $2::text, json_build_object('organizationId', $2::text, 'version', 1) FROM created
  ), organization AS MATERIALIZED (
    SELECT id FROM known UNION ALL SELECT id FROM created
  )`;
