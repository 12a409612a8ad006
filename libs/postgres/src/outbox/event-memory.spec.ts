import { register } from 'prom-client';
import { EVENT_MEMORY_BYTES, EVENT_MEMORY_MS, EventMemory } from './event-memory';
import type { OutboxEvent } from './outbox-event';

const anEvent = (id: string, bytes = 2): OutboxEvent => ({
  seq: id,
  id,
  type: 't',
  apiKey: 'k',
  organizationId: 'o',
  data: 'x'.repeat(bytes),
  occurredAt: new Date(0),
});

describe(EventMemory.name, () => {
  let lefts: number;
  let memory: EventMemory;
  let passed: string[];

  beforeEach(() => {
    [lefts, passed] = [0, []];
    memory = new EventMemory(() => lefts++);
  });

  const pass = (most = 100) => memory.pass(most, async (events) => void passed.push(...events.map(({ id }) => id)));

  it('says so when an event is left to the table, because there is no room', async () => {
    memory.add([anEvent('fits', EVENT_MEMORY_BYTES)], performance.now());
    expect(lefts).toBe(0);
    memory.add([anEvent('left'), anEvent('left, too')], performance.now());
    expect([lefts, memory.size]).toEqual([1, 1]);
    await pass();
    expect([passed, lefts]).toEqual([['fits'], 1]);
  });

  it('leaves no small event to the table because of a large one before it', async () => {
    memory.add([anEvent('large', EVENT_MEMORY_BYTES + 1), anEvent('small')], performance.now());
    await pass();
    expect([passed, lefts]).toEqual([['small'], 1]);
  });

  it('says so when an event is left to the table, because it is too old', async () => {
    memory.add([anEvent('old')], performance.now() - EVENT_MEMORY_MS);
    memory.add([anEvent('young')], performance.now());
    await pass();
    expect([passed, lefts]).toEqual([['young'], 1]);
  });

  it.each([
    ['are published', () => Promise.resolve()],
    ['could not be published', () => Promise.reject(new Error('the broker is away'))],
  ])('has room again after events that %s', async (_, publish) => {
    const bytes = async () => (await register.getSingleMetric('outbox_memory_bytes')?.get())?.values[0].value;
    for (let time = 0; time < 2; time++) {
      memory.add([anEvent('large', EVENT_MEMORY_BYTES)], performance.now());
      expect(await bytes()).toBe(EVENT_MEMORY_BYTES);
      await memory.pass(1, publish).catch(() => undefined);
      expect(await bytes()).toBe(0);
    }
    expect(lefts).toBe(0);
  });

  it('publishes nothing when all events are too old', async () => {
    memory.add([anEvent('old')], performance.now() - EVENT_MEMORY_MS);
    const publish = jest.fn();
    await memory.pass(1, publish);
    expect([publish.mock.calls, lefts]).toEqual([[], 1]);
  });

  it('leaves nothing to the table that it has passed', async () => {
    memory.add([anEvent('a'), anEvent('b')], performance.now());
    await pass(1);
    await pass(1);
    expect([passed, lefts, memory.size]).toEqual([['a', 'b'], 0, 0]);
  });
});
