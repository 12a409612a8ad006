import { OutboxRelay } from '@app/postgres/outbox/outbox';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { eventually } from '@app/testing/eventually';
import { connectTestDatabase } from '../../test/notifications';
import { takeEvents } from './outbox.repository';

/** Events that a process has left, which is killed, and a listener that refuses those of one tenant. */
describe('a process that finds many events in the outbox', () => {
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let relay: OutboxRelay | undefined;
  /** Keys and ids of the notifications of each batch, refused ones included. */
  let batches: { apiKey: string; id: string }[][];

  beforeEach(async () => {
    database = await connectTestDatabase();
    relay = undefined;
    batches = [];
  });
  afterEach(async () => {
    await relay?.stop();
    await database.close();
  });

  const query = (statement: string, values?: unknown[]) => database.dataSources[0].query<{ count: number }[]>(statement, values);
  const left = async () => (await query('SELECT count(*)::int AS count FROM outbox'))[0].count;

  /** Events that are old enough for any process. */
  async function store(apiKey: string, count: number): Promise<void> {
    await query(
      `WITH tenant AS (
         INSERT INTO organizations (api_key, organization_id) VALUES ($1, 'org') RETURNING id
       ), stored AS (
         INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
         SELECT tenant.id, 'n' || n, n, 'doc', false, 2, '\\x00', '{"actionUser":{"userId":"ada"},"notifyUsers":[]}'
         FROM tenant, generate_series(1, $2::int) n
       )
       INSERT INTO outbox (organization, notification_id, occurred_at)
       SELECT tenant.id, 'n' || n, clock_timestamp() - interval '1 minute' FROM tenant, generate_series(1, $2::int) n`,
      [apiKey, count],
    );
  }

  function start(refusedKey?: string, afterBatch?: () => Promise<unknown>): void {
    const publish = async (events: readonly OutboxEvent[]) => {
      batches.push(
        events.map(({ apiKey, data }) => ({ apiKey, id: (JSON.parse(data) as { notificationId: string }).notificationId })),
      );
      await afterBatch?.();
      return new Set(events.filter(({ apiKey }) => apiKey === refusedKey).map(({ id }) => id));
    };
    relay = new OutboxRelay(database.dataSources[0], { take: takeEvents, publish, fromMemory: true });
    relay.start();
  }

  it('publishes those of one tenant soon, however many it finds of another before them', async () => {
    await store('refused', 3000);
    await store('good', 3);
    start('refused');
    const isGood = ({ apiKey }: { apiKey: string }) => apiKey === 'good';
    await eventually(() => batches.some((batch) => batch.some(isGood)));
    expect(batches.findIndex((batch) => batch.some(isGood))).toBeLessThan(3);
    expect(batches.flat().filter(isGood)).toHaveLength(3);
  });

  it('tries each event once before it tries any of them again', async () => {
    await store('refused', 5000);
    start('refused');
    await eventually(() => batches.flat().length > 5000);
    const firsts = batches.flat().slice(0, 5000);
    expect(new Set(firsts.map(({ id }) => id)).size).toBe(5000);
  });

  it('tries a new event before it has tried all refused ones again', async () => {
    await store('refused', 4000);
    let before = 0;
    start('refused', async () => {
      if (before > 0 || batches.flat().length <= 4000) return;
      before = batches.length;
      await query(
        `INSERT INTO outbox (organization, type, body, occurred_at)
         SELECT id, 'inbox.changed.v1', '{"notificationId":"new"}', clock_timestamp() - interval '1 minute' FROM organizations`,
      );
    });
    const isNew = ({ id }: { id: string }) => id === 'new';
    await eventually(() => batches.some((batch) => batch.some(isNew)));
    expect(batches.findIndex((batch) => batch.some(isNew)) - before).toBeLessThan(3);
  });

  it('goes on after events that it drops, because their notifications are deleted', async () => {
    await store('good', 1000);
    await query(`UPDATE notifications SET document_id = '' WHERE id LIKE '%00' OR "timestamp" BETWEEN 300 AND 600`);
    start();
    // Less than the time until it looks at the table again.
    await eventually(async () => (await left()) === 0, 4000);
    expect(batches.flat()).toHaveLength(1000 - 301 - 6);
  });

  it('drops events once, whatever a listener refuses of the same batch', async () => {
    await store('refused', 500);
    await query(`UPDATE notifications SET document_id = '' WHERE "timestamp" < 200`);
    start('refused');
    await eventually(() => batches.flat().length >= 301);
    expect(batches.length).toBeLessThan(5);
  });
});
