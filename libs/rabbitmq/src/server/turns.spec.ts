import { PLACES, rows, small, TurnsBench } from '../../test/turns-bench';
import type { Delivery } from '../delivery/delivery';

const DELETE = 'notifications.delete.v1';
const ADD = 'notifications.add.v1';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
afterEach(() => void jest.useRealTimers());

describe('flows', () => {
  it('lets the events of API keys take turns', async () => {
    const bench = new TurnsBench('events');
    bench.enter('many', 'user.added.v1', 20, 8 * 1024);
    bench.enter('few', 'user.added.v1', 1, 8 * 1024);
    await bench.finish(PLACES);
    expect(bench.count('few')).toBe(1);
  });

  it('lets questions about memberships of API keys take turns, and each has costs of its own', async () => {
    const bench = new TurnsBench('queries');
    const pattern = 'memberships.list.v1';
    bench.enter('expensive', pattern, 1);
    await bench.finish(1, (delivery) => {
      rows(100_000)(delivery);
      small(delivery);
    });
    bench.enter('expensive', pattern, 20);
    bench.enter('light', pattern, 1);
    expect(bench.runs('light')).toBe(1);
  });
});

describe('Turns of commands', () => {
  it('starts only commands that are answered, and not executed, while the database is away', () => {
    const bench = new TurnsBench('commands');
    bench.enter('unawaited', ADD, PLACES + 2, 100, false);
    bench.enter('awaited', ADD, 2);
    bench.open();
    bench.enter('unawaited', ADD, 1, 100, false);
    bench.enter('awaited', ADD, 1);
    expect([bench.count('unawaited'), bench.count('awaited')]).toEqual([PLACES, 3]);
  });

  it('reports what has begun because the database is away', async () => {
    const bench = new TurnsBench('commands');
    bench.enter('awaited', ADD, PLACES + 2);
    bench.open();
    expect(await bench.reported()).toEqual([0, PLACES + 2]);
  });

  it('lets small commands pay for the rows that they change', async () => {
    const bench = new TurnsBench('commands');
    bench.enter('expensive', DELETE, 100);
    const lights = ['light', 'other light'];
    const begun = () => lights.reduce((sum, key) => sum + bench.count(key), 0);
    for (const key of lights) bench.enter(key, ADD, 10);
    while (bench.isBusy && begun() < 20) await bench.finish(1, rows(10_000));
    expect(begun()).toBe(20);
    expect(bench.count('expensive')).toBeLessThanOrEqual(PLACES + 4);
  });

  it('runs two of them at a time once it knows their cost, and light work beside them', async () => {
    const bench = new TurnsBench('commands');
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    bench.enter('expensive', DELETE, PLACES);
    expect(bench.count('expensive', 1)).toBe(2);
    bench.enter('light', ADD, 2);
    expect(bench.count('light')).toBe(2);
  });

  it('finds out by the first deletion of a tenant what the others cost', async () => {
    const bench = new TurnsBench('commands', 64);
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
    const bench = new TurnsBench('commands', 64);
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(0));
    bench.enter('light', ADD, 1);
    bench.enter('expensive', DELETE, 64);
    expect(bench.runs('expensive')).toBe(8);
  });

  it('lets one deletion of many rows run at a time beside light commands of its own tenant, but not one addition', async () => {
    const bench = new TurnsBench('commands');
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
    const bench = new TurnsBench('commands');
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    bench.enter('expensive', ADD, PLACES);
    expect(bench.count('expensive', 1)).toBe(PLACES);
  });

  it('forgets slowly what a flow has cost', async () => {
    const bench = new TurnsBench('commands');
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
    const bench = new TurnsBench('commands', 64);
    bench.enter('expensive', DELETE, 1);
    await bench.finish(1, rows(10_000));
    await bench.inTurn('expensive', DELETE, 20, rows(0));
    expect(await bench.atOnceBeside('light', ADD, 'expensive', DELETE)).toBe(1);
    jest.advanceTimersByTime(20_001);
    expect(await bench.atOnceBeside('light', ADD, 'expensive', DELETE)).toBe(8);
  });

  it.each([400, 2000])('takes the time of commands that the database has cancelled after %d ms', async (ms) => {
    const bench = new TurnsBench('commands', 64);
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
    const bench = new TurnsBench('commands', 1);
    await bench.inTurn('one of many', ADD, 1, (delivery) => (delivery.cancelledAfterMs = 2000));
    for (const key of ['first', 'other', 'one of many']) bench.enter(key, ADD, 10);
    await bench.finish(20);
    expect(bench.count('one of many', 1)).toBeGreaterThanOrEqual(6);
  });

  it('goes on finding out what they cost when one ends that says nothing', async () => {
    const bench = new TurnsBench('commands', 64);
    bench.enter('light', ADD, 1);
    bench.enter('expensive', DELETE, 64);
    for (let time = 0; time < 10; time++) {
      // The first one is still at work.
      await bench.finishLast(() => undefined);
      expect(bench.runs('expensive')).toBeLessThanOrEqual(2);
      jest.advanceTimersByTime(1);
    }
  });

  it.each([
    [100, 0],
    [511, 0],
    [512, 16],
    [2000, 4],
    [8 * 1024, 4],
    [32 * 1024, 1],
  ])('lets additions of users with %d bytes count like the recipients of a larger body: %d beside others', (bytes, most) => {
    const bench = new TurnsBench('commands', 64);
    bench.enter('light', ADD, 1);
    bench.enter('expensive', 'users.add.v1', 20, bytes);
    expect(bench.count('expensive')).toBe(most || 20);
  });

  it('takes the size of a body where the handler states nothing', async () => {
    const bench = new TurnsBench('commands');
    bench.enter('large', ADD, PLACES, 1024 * 1024);
    expect(bench.count('large')).toBe(2);
    bench.enter('small', ADD, 2);
    expect(bench.count('small')).toBe(2);
    await bench.finish(4);
  });
});
