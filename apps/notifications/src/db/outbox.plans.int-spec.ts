import type { QueryRunner } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { TAKE, TAKE_IN_TURNS } from './outbox.repository';
import { connectForPlans } from '../../test/notifications';

const ROWS = 20_000;
const LIMITS = `100, 1000000, '{notification.added.v1}', 5000`;

let runner: QueryRunner;
connectForPlans((one) => (runner = one));

/** The most rows that one step of the statement touches, with a plan from when the table was empty. */
async function mostTouched(statement: string, values: string): Promise<number> {
  const execute = `EXECUTE take (${values})`;
  await runner.query(`PREPARE take AS ${statement}`);
  await planOf(runner, execute);
  await runner.query(
    `WITH several AS (
       INSERT INTO organizations (api_key, organization_id) SELECT 'tenant', n FROM generate_series(1, ${ROWS}) n RETURNING id
     ), first AS (
       SELECT min(id) AS id FROM several
     ), outboxed AS (
       INSERT INTO outbox (organization, notification_id, occurred_at)
       SELECT first.id, 'n' || n, statement_timestamp() - interval '1 min' FROM first, generate_series(1, ${ROWS}) n
     )
     INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
     SELECT first.id, 'n' || n, n, 'doc', false, 2, '\\x00', '{"actionUser":{"userId":"ada"},"notifyUsers":[]}'
     FROM first, generate_series(1, ${ROWS}) n`,
  );
  return Math.max(...(await planOf(runner, execute)).map(touchedBy));
}

it('reads only the rows that it takes', async () => {
  expect(await mostTouched(TAKE.text, LIMITS)).toBe(100);
});

it('looks at no more rows than API keys take turns among', async () => {
  expect(await mostTouched(TAKE_IN_TURNS.text, `${LIMITS}, '{}', 2000`)).toBe(2000);
});
