import { Registry } from 'prom-client';
import { eventually } from '@app/testing/eventually';
import { aDelivery } from '../../test/a-delivery';
import type { Delivery } from '../delivery/delivery';
import { TransportMetrics } from '../metrics';
import { EventTurns } from './event-turns';
import { CommandTurns, QueryTurns } from './turns';

const DELETE = 'notifications.delete.v1';
const ADD = 'notifications.add.v1';
const INBOX = 'notifications.inbox.v1';
const GET = 'notifications.get.v1';
const PLACES = 4;

/** One delivery after the other ends, the one that has run longest first. */
class Bench {
  /** Keys in the order in which their deliveries began. */
  readonly started: string[] = [];
  private readonly running: { delivery: Delivery; end(): void }[] = [];
  private readonly turns: CommandTurns | QueryTurns | EventTurns;
  private readonly registry = new Registry();

  constructor(
    private readonly kind: 'commands' | 'queries' | 'events',
    places = PLACES,
  ) {
    const metrics = TransportMetrics.of(this.registry);
    const Turns = kind === 'queries' ? QueryTurns : CommandTurns;
    this.turns = kind === 'events' ? new EventTurns(metrics) : new Turns(metrics, places);
  }

  open(): void {
    this.turns.open();
  }

  enter(apiKey: string, pattern: string, times: number, bytes = 100, awaited = true): void {
    for (let time = 0; time < times; time++) {
      const exchange = this.kind === 'events' ? ('events.own' as const) : ('calls' as const);
      const from = { queue: { kind: this.kind, exchange }, content: Buffer.alloc(bytes) };
      const delivery = aDelivery({ apiKey, pattern, awaited, userId: 'users' }, from);
      const work = () => {
        this.started.push(apiKey);
        return new Promise<void>((end) => this.running.push({ delivery, end }));
      };
      void this.turns.run(delivery, work);
    }
  }

  /** @param state what the handler says of its work */
  async finish(times: number, state: (delivery: Delivery) => void = () => undefined): Promise<void> {
    for (let time = 0; time < times; time++) {
      const one = this.running.shift();
      if (!one) throw new Error('nothing runs');
      state(one.delivery);
      one.end();
      // Turns go on in a later microtask.
      await new Promise(setImmediate);
    }
  }

  /** Ends the delivery that began last. */
  async finishLast(state: (delivery: Delivery) => void): Promise<void> {
    this.running.unshift(this.running.pop()!);
    await this.finish(1, state);
  }

  async inTurn(apiKey: string, pattern: string, times: number, state: (delivery: Delivery) => void): Promise<void> {
    for (let time = 0; time < times; time++) {
      this.enter(apiKey, pattern, 1);
      await this.finish(1, state);
    }
  }

  /** Deliveries of the key that run at once, out of many, beside light work of another. All of them fail in the end, and teach nothing. */
  async atOnceBeside(other: string, lightPattern: string, apiKey: string, pattern: string): Promise<number> {
    this.enter(other, lightPattern, 1);
    this.enter(apiKey, pattern, 20);
    const runs = this.runs(apiKey);
    while (this.isBusy) {
      await this.finish(1);
      jest.advanceTimersByTime(1);
    }
    return runs;
  }

  /** Deliveries that wait and run, as the metrics say. */
  async reported(): Promise<number[]> {
    const names = ['rabbitmq_deliveries_waiting', 'rabbitmq_deliveries_running'];
    const values = await Promise.all(names.map((name) => this.registry.getSingleMetric(name)!.get()));
    return values.map(({ values: [one] }) => one.value);
  }

  get isBusy(): boolean {
    return this.running.length > 0;
  }

  /** Deliveries of the key that run now. */
  runs(apiKey: string): number {
    return this.running.filter(({ delivery }) => delivery.context.apiKey === apiKey).length;
  }

  count(apiKey: string, after = 0): number {
    return this.started.slice(after).filter((one) => one === apiKey).length;
  }
}

const rows = (count: number) => (delivery: Delivery) => {
  if (delivery.context.apiKey === 'expensive') delivery.context.rows = count;
};

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
afterEach(() => void jest.useRealTimers());

describe('flows', () => {
  it('lets the events of API keys take turns', async () => {
    const bench = new Bench('events');
    bench.enter('many', 'user.added.v1', 20, 8 * 1024);
    bench.enter('few', 'user.added.v1', 1, 8 * 1024);
    await bench.finish(PLACES);
    expect(bench.count('few')).toBe(1);
  });

  it('lets questions about memberships of API keys take turns, and each has costs of its own', async () => {
    const bench = new Bench('queries');
    const pattern = 'memberships.list.v1';
    bench.enter('expensive', pattern, 1);
    await bench.finish(1, (delivery) => {
      rows(100_000)(delivery);
      delivery.answered();
      delivery.encoded(2);
    });
    bench.enter('expensive', pattern, 20);
    bench.enter('light', pattern, 1);
    expect(bench.runs('light')).toBe(1);
  });
});

describe('CommandTurns', () => {
  it('starts only commands that are answered, and not executed, while the database is away', () => {
    const bench = new Bench('commands');
    bench.enter('unawaited', ADD, PLACES + 2, 100, false);
    bench.enter('awaited', ADD, 2);
    bench.open();
    bench.enter('unawaited', ADD, 1, 100, false);
    bench.enter('awaited', ADD, 1);
    expect([bench.count('unawaited'), bench.count('awaited')]).toEqual([PLACES, 3]);
  });

  it('reports what has begun because the database is away', async () => {
    const bench = new Bench('commands');
    bench.enter('awaited', ADD, PLACES + 2);
    bench.open();
    expect(await bench.reported()).toEqual([0, PLACES + 2]);
  });

  it('lets small commands pay for the rows that they change', async () => {
    const bench = new Bench('commands');
    bench.enter('expensive', DELETE, 100);
    const lights = ['light', 'other light'];
    const begun = () => lights.reduce((sum, key) => sum + bench.count(key), 0);
    for (const key of lights) bench.enter(key, ADD, 10);
    while (bench.isBusy && begun() < 20) await bench.finish(1, rows(10_000));
    expect(begun()).toBe(20);
    expect(bench.count('expensive')).toBeLessThanOrEqual(PLACES + 4);
  });

  it('runs two of them at a time once it knows their cost, and light work beside them', async () => {
    const bench = new Bench('commands');
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    bench.enter('expensive', DELETE, PLACES);
    expect(bench.count('expensive', 1)).toBe(2);
    bench.enter('light', ADD, 2);
    expect(bench.count('light')).toBe(2);
  });

  it('finds out by the first deletion of a tenant what the others cost', async () => {
    const bench = new Bench('commands', 64);
    bench.enter('light', ADD, 1);
    bench.enter('expensive', DELETE, 64);
    // One that is tried, and one beside it.
    expect(bench.runs('expensive')).toBe(2);
    bench.enter('light', DELETE, 1);
    expect(bench.runs('light')).toBe(2);
    await bench.finish(2);
    expect(bench.runs('expensive')).toBeLessThanOrEqual(2);
  });

  it('runs a few small ones of one tenant beside those of others: each has a statement and a commit of its own', async () => {
    const bench = new Bench('commands', 64);
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(0));
    bench.enter('light', ADD, 1);
    bench.enter('expensive', DELETE, 64);
    expect(bench.runs('expensive')).toBe(8);
  });

  it('lets one deletion of many rows run at a time beside light commands of its own tenant, but not one addition', async () => {
    const bench = new Bench('commands');
    const besideLight = async (pattern: string, bytes: number) => {
      bench.enter('expensive', ADD, 1);
      await bench.finish(1);
      bench.enter('expensive', pattern, 2, bytes);
      const runs = bench.runs('expensive');
      while (bench.isBusy) await bench.finish(1);
      return runs;
    };
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    expect(await besideLight(ADD, 1024 * 1024)).toBe(2);
    expect(await besideLight(DELETE, 100)).toBe(1);
  });

  it('expects nothing of other patterns of a flow', async () => {
    const bench = new Bench('commands');
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    bench.enter('expensive', ADD, PLACES);
    expect(bench.count('expensive', 1)).toBe(PLACES);
  });

  it('forgets slowly what a flow has cost', async () => {
    const bench = new Bench('commands');
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    const smallOnes = async (times: number) => {
      for (let time = 0; time < times; time++) {
        bench.enter('expensive', DELETE, 1);
        await bench.finish(1, rows(1));
      }
    };
    await smallOnes(3);
    const atOnce = async () => {
      const before = bench.started.length;
      bench.enter('expensive', DELETE, PLACES);
      const begun = bench.count('expensive', before);
      await bench.finish(PLACES, rows(1));
      return begun;
    };
    expect(await atOnce()).toBe(2);
    await smallOnes(20);
    expect(await atOnce()).toBe(PLACES);
  });

  it('forgets only after ten seconds beside light commands of others', async () => {
    const bench = new Bench('commands', 64);
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    await bench.inTurn('expensive', DELETE, 20, rows(0));
    expect(await bench.atOnceBeside('light', ADD, 'expensive', DELETE)).toBe(1);
    jest.advanceTimersByTime(20_001);
    expect(await bench.atOnceBeside('light', ADD, 'expensive', DELETE)).toBe(8);
  });

  it.each([400, 2000])('takes the time of commands that the database has cancelled after %d ms', async (ms) => {
    const bench = new Bench('commands', 64);
    const cancelled = (delivery: Delivery) => (delivery.cancelledAfterMs = ms);
    await bench.inTurn('expensive', DELETE, 1, cancelled);
    bench.enter('light', ADD, 1);
    bench.enter('expensive', DELETE, 64);
    expect(bench.runs('expensive')).toBe(1);
    await bench.finish(2, cancelled);
    jest.advanceTimersByTime(2000);
    expect(bench.runs('expensive')).toBe(2);
  });

  it('makes no tenant pay for a cancelled statement that it shares with others', async () => {
    const bench = new Bench('commands', 1);
    await bench.inTurn('one of many', ADD, 1, (delivery) => (delivery.cancelledAfterMs = 2000));
    for (const key of ['first', 'other', 'one of many']) bench.enter(key, ADD, 10);
    await bench.finish(20);
    expect(bench.count('one of many', 1)).toBeGreaterThanOrEqual(6);
  });

  it('goes on finding out what they cost when one ends that says nothing', async () => {
    const bench = new Bench('commands', 64);
    bench.enter('light', ADD, 1);
    bench.enter('expensive', DELETE, 64);
    for (let time = 0; time < 10; time++) {
      // The first one is still at work.
      await bench.finishLast(() => undefined);
      expect(bench.runs('expensive')).toBeLessThanOrEqual(2);
      jest.advanceTimersByTime(1);
    }
  });

  it('takes the size of a body where the handler states nothing', async () => {
    const bench = new Bench('commands');
    bench.enter('large', ADD, PLACES, 1024 * 1024);
    expect(bench.count('large')).toBe(2);
    bench.enter('small', ADD, 2);
    expect(bench.count('small')).toBe(2);
    await bench.finish(4);
  });
});

describe('QueryTurns', () => {
  it('reports what starts after a rest', async () => {
    const bench = new Bench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    bench.enter('light', INBOX, 1);
    bench.enter('expensive', INBOX, 2);
    expect(await bench.reported()).toEqual([1, 2]);
    await bench.finish(2, small);
    await eventually(() => bench.isBusy);
    expect(await bench.reported()).toEqual([0, 1]);
  });

  it("does not halve a tenant's heavy queries beside its own questions between the services, and those about credentials", async () => {
    const bench = new Bench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    const beside = async (apiKey: string, pattern: string) => {
      bench.enter(apiKey, pattern, 1);
      await bench.finish(1, small);
      bench.enter('expensive', INBOX, 2);
      const runs = bench.runs('expensive');
      await bench.finish(runs);
      while (bench.isBusy) await bench.finish(1);
      return runs;
    };
    expect(await beside('', 'users.authenticate.v1')).toBe(2);
    expect(await beside('expensive', 'memberships.list.v1')).toBe(2);
    expect(await beside('light', 'memberships.list.v1')).toBe(1);
  });

  const answers = (bytes: number) => (delivery: Delivery) => {
    delivery.answered();
    delivery.encoded(bytes);
  };
  const small = answers(2);
  const large = answers(4 * 1024 * 1024);

  it('lets small answers pay for the rows that were looked at', async () => {
    const bench = new Bench('queries');
    const looked = (delivery: Delivery) => {
      small(delivery);
      rows(12_000)(delivery);
    };
    bench.enter('expensive', INBOX, 100);
    bench.enter('light', INBOX, 20);
    // What looks at many rows rests in between.
    while (bench.isBusy && bench.count('light') < 20) await bench.finish(1, looked);
    expect(bench.count('light')).toBe(20);
    expect(bench.count('expensive')).toBeLessThanOrEqual(PLACES + 8);
  });

  it('lets large answers pay for their bytes', async () => {
    const bench = new Bench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    bench.enter('expensive', INBOX, PLACES);
    expect(bench.count('expensive', 1)).toBe(2);
  });

  it('finds out by the first query of a flow what the others cost', async () => {
    const bench = new Bench('queries');
    bench.enter('expensive', INBOX, PLACES);
    // One that is tried, and one beside it.
    expect(bench.count('expensive')).toBeLessThanOrEqual(3);
    bench.enter('light', INBOX, 1);
    expect(bench.count('light')).toBe(1);
    await bench.finish(bench.started.length, large);
    expect(bench.count('expensive')).toBeLessThanOrEqual(PLACES);
  });

  it('asks for the cost again when a query that came early could start', async () => {
    const bench = new Bench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, small);
    bench.enter('expensive', INBOX, 3 * PLACES);
    expect(bench.runs('expensive')).toBe(PLACES);
    await bench.finish(PLACES, large);
    expect(bench.runs('expensive')).toBe(2);
  });

  it('lets light queries pass the heavy ones of their own key, also those that waited to know their cost', async () => {
    const bench = new Bench('queries', 64);
    bench.enter('key', GET, 1);
    await bench.finish(1, large);
    bench.enter('key', GET, 4);
    bench.enter('key', INBOX, 5);
    // Two pages, and the first inbox, which is tried.
    expect(bench.runs('key')).toBe(3);
    await bench.finishLast(small);
    expect(bench.runs('key')).toBe(6);
  });

  it('cannot be talked down beside light queries of others, by many empty answers after a large one', async () => {
    const bench = new Bench('queries', 8);
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    await bench.inTurn('expensive', INBOX, 20, small);
    expect(await bench.atOnceBeside('light', INBOX, 'expensive', INBOX)).toBe(1);
    jest.advanceTimersByTime(10_001);
    await bench.inTurn('expensive', INBOX, 1, small);
    expect(await bench.atOnceBeside('light', INBOX, 'expensive', INBOX)).toBe(1);
    jest.advanceTimersByTime(10_001);
    await bench.inTurn('expensive', INBOX, 1, small);
    // Half of the places.
    expect(await bench.atOnceBeside('light', INBOX, 'expensive', INBOX)).toBe(4);
  });

  it('lets a tenant alone have its light queries in all places after a large answer', async () => {
    const bench = new Bench('queries', 8);
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    await bench.inTurn('expensive', INBOX, 12, small);
    bench.enter('expensive', INBOX, 8);
    expect(bench.runs('expensive')).toBe(8);
  });

  it('forgets by light answers what questions of the services have cost, which all tenants ask', async () => {
    const bench = new Bench('queries', 8);
    bench.enter('expensive', 'users.exists.v1', 1);
    await bench.finish(1, large);
    await bench.inTurn('expensive', 'users.exists.v1', 20, small);
    expect(await bench.atOnceBeside('light', INBOX, 'expensive', 'users.exists.v1')).toBe(4);
  });

  it('takes the time of queries that the database has cancelled', async () => {
    const bench = new Bench('queries', 8);
    await bench.inTurn('expensive', INBOX, 1, small);
    await bench.inTurn('expensive', INBOX, 1, (delivery) => (delivery.cancelledAfterMs = 2000));
    bench.enter('expensive', INBOX, 8);
    expect(bench.runs('expensive')).toBe(2);
  });

  it('lets a query that fails pay for the rows that it has looked at', async () => {
    const bench = new Bench('queries', 8);
    await bench.inTurn('expensive', INBOX, 1, small);
    await bench.inTurn('expensive', INBOX, 1, rows(100_000));
    bench.enter('expensive', INBOX, 8);
    expect(bench.runs('expensive')).toBe(2);
  });

  describe('with rows that the next one will hardly have', () => {
    const question = (delivery: Delivery) => Object.assign(delivery.context, { rows: 4000, oneTimeRows: 4000 });
    const asked = (delivery: Delivery) => void Object.assign(question(delivery), { rows: 4001 });

    it('expects light ones, which pass the heavy pages of others', async () => {
      const bench = new Bench('queries', 8);
      for (const apiKey of ['heavy', 'modest']) await bench.inTurn(apiKey, INBOX, 1, small);
      await bench.inTurn('heavy', INBOX, 1, large);
      await bench.inTurn('modest', INBOX, 1, asked);
      bench.enter('heavy', INBOX, 8);
      bench.enter('modest', INBOX, 1);
      expect(bench.runs('modest')).toBe(1);
    });

    it('lets those of one tenant rest in half of the places beside light ones of others', async () => {
      const bench = new Bench('queries', 8);
      for (const apiKey of ['light', 'curious']) await bench.inTurn(apiKey, INBOX, 1, small);
      bench.enter('light', INBOX, 1);
      bench.enter('curious', INBOX, 8);
      expect(bench.runs('curious')).toBe(4);
      jest.advanceTimersByTime(100);
      await bench.finish(5, asked);
      expect(bench.runs('curious')).toBe(0);
      jest.advanceTimersByTime(100);
      expect(bench.runs('curious')).toBe(4);
    });

    it('learns nothing from one that fails, and lets it pay', async () => {
      const bench = new Bench('queries', 8);
      await bench.inTurn('expensive', INBOX, 1, large);
      await bench.inTurn('expensive', INBOX, 20, (delivery) => void question(delivery));
      bench.enter('expensive', INBOX, 8);
      expect(bench.runs('expensive')).toBe(2);
    });
  });

  it('learns nothing from queries that expire or fail', async () => {
    const bench = new Bench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    for (let time = 0; time < 20; time++) {
      bench.enter('expensive', INBOX, 1);
      await bench.finish(1);
    }
    bench.enter('expensive', INBOX, PLACES);
    expect(bench.runs('expensive')).toBe(2);
  });
});
