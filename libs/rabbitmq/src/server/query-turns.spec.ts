import { large, PLACES, rows, small, TurnsBench } from '../../test/turns-bench';
import type { Delivery } from '../delivery/delivery';

const INBOX = 'notifications.inbox.v1';
const GET = 'notifications.get.v1';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
afterEach(() => void jest.useRealTimers());

describe('Turns of queries', () => {
  it('reports what starts after a rest', async () => {
    const bench = new TurnsBench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    bench.enter('light', INBOX, 1);
    bench.enter('expensive', INBOX, 2);
    expect(await bench.reported()).toEqual([1, 2]);
    await bench.finish(2, small);
    expect(await bench.reported()).toEqual([0, 1]);
  });

  it("does not halve a tenant's heavy queries beside its own questions between the services, and those about credentials", async () => {
    const bench = new TurnsBench('queries');
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

  it('lets small answers pay for the rows that were looked at', async () => {
    const bench = new TurnsBench('queries');
    const looked = (delivery: Delivery) => {
      small(delivery);
      rows(12_000)(delivery);
    };
    bench.enter('expensive', INBOX, 100);
    bench.enter('light', INBOX, 20);
    // A query that looks at many rows rests in between.
    while (bench.isBusy && bench.count('light') < 20) await bench.finish(1, looked);
    expect(bench.count('light')).toBe(20);
    expect(bench.count('expensive')).toBeLessThanOrEqual(PLACES + 8);
  });

  it('lets large answers pay for their bytes', async () => {
    const bench = new TurnsBench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    bench.enter('expensive', INBOX, PLACES);
    expect(bench.count('expensive', 1)).toBe(2);
  });

  it('finds out by the first query of a flow what the others cost', async () => {
    const bench = new TurnsBench('queries');
    bench.enter('expensive', INBOX, PLACES);
    // One that is tried, and one beside it.
    expect(bench.count('expensive')).toBeLessThanOrEqual(3);
    bench.enter('light', INBOX, 1);
    expect(bench.count('light')).toBe(1);
    await bench.finish(bench.started.length, large);
    expect(bench.count('expensive')).toBeLessThanOrEqual(PLACES);
  });

  it('leaves places to light queries when the first ones of many tenants come at once, and those before were heavy', async () => {
    const bench = new TurnsBench('queries', 8);
    await bench.inTurn('light', INBOX, 1, small);
    const keys = Array.from({ length: 20 }, (_, number) => `new ${number}`);
    await bench.inTurn('first', INBOX, 1, large);
    jest.advanceTimersByTime(1);
    for (const key of keys) bench.enter(key, INBOX, 1);
    bench.enter('light', INBOX, 1);
    const running = () => keys.filter((key) => bench.runs(key) > 0).length;
    // Three that are tried, and one beside them.
    expect([running(), bench.runs('light')]).toEqual([4, 1]);
    while (bench.isBusy) {
      await bench.finish(1, large);
      jest.advanceTimersByTime(1);
      expect(running()).toBeLessThanOrEqual(4);
    }
    expect(bench.started).toHaveLength(23);
  });

  it('lets the first queries of many tenants have all places while they are light', async () => {
    const bench = new TurnsBench('queries', 8);
    const keys = Array.from({ length: 20 }, (_, number) => `new ${number}`);
    await bench.inTurn('heavy', INBOX, 1, large);
    jest.advanceTimersByTime(10_001);
    for (const key of keys) bench.enter(key, INBOX, 1);
    for (let left = 20; left > 0; left--) {
      expect(keys.filter((key) => bench.runs(key) > 0)).toHaveLength(Math.min(8, left));
      await bench.finish(1, small);
    }
  });

  it('finds out anew what light queries of a flow cost 20 s later, beside light ones of others', async () => {
    const bench = new TurnsBench('queries', 8);
    await bench.inTurn('quiet', INBOX, 3, small);
    expect(await bench.atOnceBeside('light', INBOX, 'quiet', INBOX)).toBe(4);
    jest.advanceTimersByTime(20_001);
    // One that is tried, and one beside it.
    expect(await bench.atOnceBeside('light', INBOX, 'quiet', INBOX)).toBe(2);
    await bench.inTurn('quiet', INBOX, 1, small);
    expect(await bench.atOnceBeside('light', INBOX, 'quiet', INBOX)).toBe(4);
    await bench.inTurn('quiet', INBOX, 1, large);
    jest.advanceTimersByTime(20_001);
    expect(await bench.atOnceBeside('light', INBOX, 'quiet', INBOX)).toBe(1);
  });

  it('asks for the cost again when a query that came early could start', async () => {
    const bench = new TurnsBench('queries');
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, small);
    bench.enter('expensive', INBOX, 3 * PLACES);
    expect(bench.runs('expensive')).toBe(PLACES);
    await bench.finish(PLACES, large);
    expect(bench.runs('expensive')).toBe(2);
  });

  it('lets light queries pass the heavy ones of their own key, also those that waited to know their cost', async () => {
    const bench = new TurnsBench('queries', 64);
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
    const bench = new TurnsBench('queries', 8);
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
    const bench = new TurnsBench('queries', 8);
    bench.enter('expensive', INBOX, 1);
    await bench.finish(1, large);
    await bench.inTurn('expensive', INBOX, 12, small);
    bench.enter('expensive', INBOX, 8);
    expect(bench.runs('expensive')).toBe(8);
  });

  it('forgets by light answers what questions of the services have cost, which all tenants ask', async () => {
    const bench = new TurnsBench('queries', 8);
    bench.enter('expensive', 'users.exists.v1', 1);
    await bench.finish(1, large);
    await bench.inTurn('expensive', 'users.exists.v1', 20, small);
    expect(await bench.atOnceBeside('light', INBOX, 'expensive', 'users.exists.v1')).toBe(4);
  });

  it('takes the time of queries that the database has cancelled', async () => {
    const bench = new TurnsBench('queries', 8);
    await bench.inTurn('expensive', INBOX, 1, small);
    await bench.inTurn('expensive', INBOX, 1, (delivery) => (delivery.cancelledAfterMs = 2000));
    bench.enter('expensive', INBOX, 8);
    expect(bench.runs('expensive')).toBe(2);
  });

  it('lets a query that fails pay for the rows that it has looked at', async () => {
    const bench = new TurnsBench('queries', 8);
    await bench.inTurn('expensive', INBOX, 1, small);
    await bench.inTurn('expensive', INBOX, 1, rows(100_000));
    bench.enter('expensive', INBOX, 8);
    expect(bench.runs('expensive')).toBe(2);
  });

  it('learns nothing from queries that expire or fail', async () => {
    const bench = new TurnsBench('queries');
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
