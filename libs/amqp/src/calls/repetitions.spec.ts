import type { Query } from './query';
import { Repetitions } from './repetitions';

const OPERATION = { kind: 'query', pattern: 'users.exists.v1' } as const;
const query = (correlationId: string, apiKey?: string, more: Partial<Query> = {}) =>
  ({ operation: OPERATION, correlationId, options: { apiKey }, ...more }) as Query;
const asked = (askedAt: number, apiKey?: string) => query('asked', apiKey, { askedAt, repetitions: 3 });

describe(Repetitions.name, () => {
  it('takes nothing from the others for a key that may not ask again', () => {
    const repetitions = new Repetitions();
    const slow = Array.from({ length: 20 }, (_, number) => repetitions.take(query(`slow ${number}`, 'slow')));
    expect(slow.filter(Boolean)).toHaveLength(2);
    const others = Array.from({ length: 20 }, (_, number) => repetitions.take(query(`other ${number}`, `other ${number}`)));
    expect(others.filter(Boolean)).toHaveLength(8);
  });

  it('lets a query of a key that is asked again be asked again once more', () => {
    const repetitions = new Repetitions();
    const taken = ['a', 'b', 'c', 'a', 'b', 'c'].map((id) => repetitions.take(query(id, 'slow')));
    expect(taken).toEqual([true, true, false, true, true, false]);
  });

  it('gives back what helped, and never more than there was', () => {
    const repetitions = new Repetitions();
    const takeAll = () => Array.from({ length: 30 }, (_, number) => repetitions.take(query(`${number}`))).filter(Boolean).length;
    expect(takeAll()).toBe(10);
    repetitions.answered(asked(2));
    repetitions.answered(asked(0));
    repetitions.helped(asked(1));
    expect(takeAll()).toBe(3);
    for (let number = 0; number < 20; number++) repetitions.helped(asked(1));
    expect(takeAll()).toBe(10);
  });

  it('gives nothing back when no query that was asked later has its answer', () => {
    const repetitions = new Repetitions();
    const takeAll = () => Array.from({ length: 30 }, (_, number) => repetitions.take(query(`${number}`))).filter(Boolean).length;
    expect(takeAll()).toBe(10);
    repetitions.helped(asked(1));
    repetitions.answered(asked(1));
    repetitions.answered(asked(0));
    repetitions.helped(asked(1));
    expect(takeAll()).toBe(0);
    repetitions.helped(asked(1), true);
    expect(takeAll()).toBe(3);
  });

  it('raises the limit of a key only when a later query of the same key was answered, because keys take turns', () => {
    const repetitions = new Repetitions();
    const takeFour = (key: string) => ['a', 'b', 'c', 'd'].map((id) => repetitions.take(query(`${key} ${id}`, key)));
    repetitions.answered(asked(2, 'light'));
    repetitions.helped(asked(1, 'heavy'));
    expect(takeFour('heavy')).toEqual([true, true, false, false]);
    repetitions.answered(asked(2, 'heavy'));
    repetitions.helped(asked(1, 'heavy'));
    expect(takeFour('other')).toEqual([true, true, true, true]);
  });

  it('forgets the answers of 10,000 keys at once', () => {
    const repetitions = new Repetitions();
    for (let number = 0; number < 25_000; number++) repetitions.answered(asked(1, `key ${number}`));
    expect((repetitions as unknown as { latestAnswered: Map<string, unknown> }).latestAnswered.size).toBeLessThanOrEqual(10_001);
  });

  it('does not limit the questions of a process itself by key', () => {
    const repetitions = new Repetitions();
    expect(['a', 'b', 'c'].map((id) => repetitions.take(query(id)))).toEqual([true, true, true]);
  });

  it('forgets keys without queries that were asked again', () => {
    const repetitions = new Repetitions();
    for (let number = 0; number < 10_000; number++) {
      for (let other = 0; other < 10; other++) repetitions.asked();
      const one = query(`${number}`, `key ${number}`);
      expect(repetitions.take(one)).toBe(true);
      repetitions.ended(one);
    }
    expect((repetitions as unknown as { ofKey: Map<string, unknown> }).ofKey.size).toBe(0);
  });
});
