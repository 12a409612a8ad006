import { large, small, TurnsBench } from '../../test/turns-bench';
import type { Delivery } from '../delivery/delivery';

const INBOX = 'notifications.inbox.v1';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
afterEach(() => void jest.useRealTimers());

describe('queries with rows that the next one will hardly have', () => {
  const question = (delivery: Delivery) => Object.assign(delivery.context, { rows: 4000, oneTimeRows: 4000 });
  const asked = (delivery: Delivery) => void Object.assign(question(delivery), { rows: 4001 });

  it('expects light ones, which pass the heavy pages of others', async () => {
    const bench = new TurnsBench('queries', 8);
    for (const apiKey of ['heavy', 'modest']) await bench.inTurn(apiKey, INBOX, 1, small);
    await bench.inTurn('heavy', INBOX, 1, large);
    await bench.inTurn('modest', INBOX, 1, asked);
    bench.enter('heavy', INBOX, 8);
    bench.enter('modest', INBOX, 1);
    expect(bench.runs('modest')).toBe(1);
  });

  it('lets those of one tenant rest in half of the places beside light ones of others', async () => {
    const bench = new TurnsBench('queries', 8);
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

  it('leaves the budget to the heavy pages of others while they rest', async () => {
    const bench = new TurnsBench('queries', 8);
    await bench.inTurn('heavy', INBOX, 1, large);
    await bench.inTurn('curious', INBOX, 1, small);
    bench.enter('light', INBOX, 1);
    bench.enter('curious', INBOX, 4);
    jest.advanceTimersByTime(100);
    await bench.finish(5, asked);
    bench.enter('curious', INBOX, 1);
    bench.enter('heavy', INBOX, 1);
    expect([bench.runs('curious'), bench.runs('heavy')]).toEqual([0, 1]);
  });

  it('learns nothing from one that fails, and lets it pay', async () => {
    const bench = new TurnsBench('queries', 8);
    await bench.inTurn('expensive', INBOX, 1, large);
    await bench.inTurn('expensive', INBOX, 20, (delivery) => void question(delivery));
    bench.enter('expensive', INBOX, 8);
    expect(bench.runs('expensive')).toBe(2);
  });
});
