import type { ApiError } from '@app/contracts/error';
import { MOST_QUESTIONS, PATIENCE_MS, Questions } from './questions';

const { ofKey, ofAll } = MOST_QUESTIONS;
const MANY = 2 * ofAll;
const AWAY = new Error('away');

describe(Questions.name, () => {
  let questions: Questions;
  /** Questions at work, in the order of their beginning. */
  let atWork: { apiKey: string; end: (error?: Error) => Promise<void> }[];
  let outcomes: string[];

  beforeEach(() => {
    jest.useFakeTimers();
    questions = new Questions();
    atWork = [];
    outcomes = [];
  });
  afterEach(() => void jest.useRealTimers());

  const settle = () => jest.advanceTimersByTimeAsync(0);
  const ask = async (apiKey: string, count = 1) => {
    for (let asked = 0; asked < count; asked++) {
      const question = () =>
        new Promise<void>((resolve, reject) => {
          const one = {
            apiKey,
            end: async (error?: Error) => {
              atWork.splice(atWork.indexOf(one), 1);
              if (error) reject(error);
              else resolve();
              await settle();
            },
          };
          atWork.push(one);
        });
      void questions.ask(apiKey, question).then(
        () => outcomes.push(`${apiKey} answered`),
        (error: unknown) => outcomes.push(`${apiKey} ${error === AWAY ? 'failed' : (error as ApiError).status}`),
      );
    }
    await settle();
  };
  const atWorkOf = (apiKey: string) => atWork.filter((one) => one.apiKey === apiKey).length;
  const countOf = (outcome: string) => outcomes.filter((one) => one === outcome).length;

  it('begin a few of a key and of all, and the next one when one ends', async () => {
    await ask('a', MANY);
    expect(atWork).toHaveLength(ofKey);
    await ask('b', MANY);
    await ask('c', MANY);
    expect([atWorkOf('a'), atWorkOf('b'), atWork.length]).toEqual([ofKey, ofAll - ofKey, ofAll]);
    await atWork[0].end();
    await atWork[0].end();
    expect([countOf('a answered'), atWork.length]).toEqual([2, ofAll]);
    expect(atWorkOf('c')).toBe(1);
  });

  it('all have their turn while answers come', async () => {
    await ask('a', MANY);
    while (atWork.length > 0) await atWork[0].end();
    expect(outcomes).toEqual(Array(MANY).fill('a answered'));
    expect(jest.getTimerCount()).toBe(0);
  });

  it('without a turn fail after a short wait, and at once when there was no answer for as long', async () => {
    await ask('a', ofKey + 1);
    await jest.advanceTimersByTimeAsync(PATIENCE_MS - 1);
    expect(outcomes).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(outcomes).toEqual(['a UNAVAILABLE']);
    await ask('a');
    expect(outcomes).toEqual(['a UNAVAILABLE', 'a UNAVAILABLE']);
    await ask('b');
    expect(atWorkOf('b')).toBe(1);
    await atWork[0].end();
    await ask('a', 2);
    expect([atWorkOf('a'), countOf('a UNAVAILABLE')]).toEqual([ofKey, 2]);
  });

  it('fail at once after one that has failed, until one is answered', async () => {
    await ask('a', ofKey);
    while (atWork.length > 0) await atWork[0].end(AWAY);
    await ask('a', ofKey + 1);
    expect([atWork.length, countOf('a failed'), countOf('a UNAVAILABLE')]).toEqual([ofKey, ofKey, 1]);
    await atWork[0].end();
    await ask('a', 2);
    expect([atWork.length, countOf('a UNAVAILABLE')]).toEqual([ofKey, 1]);
  });

  it('wait again after a time without questions', async () => {
    await ask('a');
    await atWork[0].end();
    await jest.advanceTimersByTimeAsync(10 * PATIENCE_MS);
    await ask('a', MANY);
    expect([atWork.length, countOf('a UNAVAILABLE')]).toEqual([ofKey, 0]);
  });

  it('wait beside one that hangs, and after one that is lost while others are answered', async () => {
    await ask('lost');
    await jest.advanceTimersByTimeAsync(2 * PATIENCE_MS);
    await ask('a', MANY);
    expect([atWorkOf('a'), countOf('a UNAVAILABLE')]).toEqual([ofKey, 0]);
    await atWork[1].end();
    await atWork[0].end(AWAY);
    await ask('a');
    expect(countOf('a UNAVAILABLE')).toBe(0);
    while (atWork.length > 0) await atWork[0].end();
    expect(countOf('a answered')).toBe(MANY + 1);
  });

  it('that were given up never begin', async () => {
    await ask('a', MANY);
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    await atWork[0].end();
    expect([atWork.length, countOf('a UNAVAILABLE')]).toEqual([ofKey - 1, MANY - ofKey]);
  });
});
