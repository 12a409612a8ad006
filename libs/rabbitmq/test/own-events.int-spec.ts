import type { ConfirmChannel } from 'amqplib';
import { Registry } from 'prom-client';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { patternsOf } from '../src/server/handler-check';
import { RabbitServer } from '../src/server/rabbit.server';

const ADDED = 'user.added.v1';
const REMOVED = 'user.removed.v1';
const ADD = 'notifications.add.v1';
/** Each takes half of the budget. */
const HEAVY_BYTES = 64 * 1024;

describe('events of a tenant that causes many large ones', () => {
  let broker: DeclaredBroker;
  let channel: ConfirmChannel;
  let server: RabbitServer;
  /** Deliveries that have begun, by pattern. */
  let begun: Map<string, number>;
  /** Handlers of additions wait for it. */
  let additions: ReturnType<typeof gate>;

  beforeEach(async () => {
    broker = await createDeclaredBroker();
    ({ channel } = broker);
    begun = new Map();
    additions = gate();
    server = new RabbitServer({
      service: 'notifications',
      connection: { url: broker.url, name: 'notifications' },
      queues: ['commands', 'events'],
      prefetch: { commands: 50, queries: 50 },
      metrics: new Registry(),
    });
    for (const pattern of patternsOf('notifications'))
      server.addHandler(pattern, async () => {
        begun.set(pattern, countOf(pattern) + 1);
        if (pattern === ADDED) await additions.opened;
      });
    server.listen(() => undefined);
    await eventually(() => server.check() === undefined);
  });
  afterEach(async () => {
    additions.open();
    await server.close();
    await broker.drop();
  });

  const countOf = (pattern: string) => begun.get(pattern) ?? 0;

  async function publish(exchange: string, pattern: string, apiKey: string, times: number, bytes = 0): Promise<void> {
    const body = Buffer.from(JSON.stringify({ padding: 'x'.repeat(bytes) }));
    for (let time = 0; time < times; time++)
      channel.publish(exchange, pattern, body, { persistent: true, headers: { 'x-api-key': apiKey } });
    await channel.waitForConfirms();
  }

  it('have all of their budget beside light calls of others, so that no backlog grows', async () => {
    await publish('calls', ADD, 'quiet', 1);
    await eventually(() => countOf(ADD) === 1);
    await publish('events.own', ADDED, 'many', 3, HEAVY_BYTES);
    await eventually(async () => {
      await publish('calls', ADD, 'quiet', 1);
      return countOf(ADDED) === 2;
    });
  });

  it('do not keep those of others behind them from their turn', async () => {
    await publish('events.own', ADDED, 'many', 20, HEAVY_BYTES);
    await publish('events.own', REMOVED, 'quiet', 1);
    await eventually(() => countOf(REMOVED) === 1);
    expect(countOf(ADDED)).toBe(2);
  });
});
