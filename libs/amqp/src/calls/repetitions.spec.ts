import type { Request } from '../messages/message-properties';
import { Repetitions } from './repetitions';

const query = (correlationId: string, apiKey?: string) => ({ correlationId, options: { apiKey } }) as unknown as Request;

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
    const asked = ['a', 'b', 'c', 'a', 'b', 'c'].map((id) => repetitions.take(query(id, 'slow')));
    expect(asked).toEqual([true, true, false, true, true, false]);
  });

  it('gives back what helped, and never more than there was', () => {
    const repetitions = new Repetitions();
    const takeAll = () => Array.from({ length: 30 }, (_, number) => repetitions.take(query(`${number}`))).filter(Boolean).length;
    expect(takeAll()).toBe(10);
    repetitions.helped(3);
    expect(takeAll()).toBe(3);
    for (let number = 0; number < 20; number++) repetitions.helped(1);
    expect(takeAll()).toBe(10);
  });

  it('does not limit the questions of a process itself by key', () => {
    const repetitions = new Repetitions();
    expect(['a', 'b', 'c'].map((id) => repetitions.take(query(id)))).toEqual([true, true, true]);
  });

  it('forgets keys without queries that were asked again', () => {
    const repetitions = new Repetitions();
    for (let number = 0; number < 10_000; number++) {
      for (let asked = 0; asked < 10; asked++) repetitions.asked();
      const one = query(`${number}`, `key ${number}`);
      expect(repetitions.take(one)).toBe(true);
      repetitions.ended(one);
    }
    expect((repetitions as unknown as { ofKey: Map<string, unknown> }).ofKey.size).toBe(0);
  });
});
