import { EVENT_TYPES } from '@app/contracts/event-types';

/**
 * `admitted` is empty when the statement might end more than half a second after the deadline, given its statement_timeout. The other half of the
 * second is for the caller's clock.
 *
 * @param deadline number of the parameter with the deadline, in epoch milliseconds or null
 * @param condition a further SQL condition, such as `AND …`
 */
export const admittedCte = (deadline: number, condition = '') => `
  admitted AS MATERIALIZED (
    SELECT WHERE ($${deadline}::bigint IS NULL
        OR clock_timestamp() + current_setting('statement_timeout')::interval
          <= to_timestamp($${deadline} / 1000.0) + interval '500 ms')
      ${condition}
  )`;

/**
 * Beginning of every statement that creates in an organization. Parameters: 1 api key, 2 organizationId. The number of the organization is in
 * `organization (id)`. A missing organization is created, with its event. `organization` is empty, and nothing changes, when
 * - `admitted` is empty: see {@link admittedCte},
 * - another transaction is creating the organization: it is invisible to this statement, and visible to the next one.
 *
 * @param trace number of the parameter with the trace context of events, which may be null
 */
export const organizationCte = (deadline: number, trace: number, condition = '') => `
  WITH ${admittedCte(deadline, condition)}, known AS MATERIALIZED (
    SELECT o.id FROM admitted, organizations o WHERE o.api_key = $1::text AND o.organization_id = $2::text
  ), created AS (
    INSERT INTO organizations (api_key, organization_id)
    SELECT $1::text, $2::text FROM admitted WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT DO NOTHING
    RETURNING id
  ), organization_created AS (
    INSERT INTO outbox (type, api_key, organization_id, data, trace)
    SELECT '${EVENT_TYPES.organizationCreated}', $1::text, $2::text, json_build_object('organizationId', $2::text, 'version', 1), $${trace}::text
    FROM created
  ), organization AS MATERIALIZED (
    SELECT id FROM known UNION ALL SELECT id FROM created
  )`;
