import { eventually } from '@app/testing/eventually';
import { DeletionLoop, type Deleted } from './deletion-loop';
import { retentionFailures } from '../metrics';

describe('the loop of deletions', () => {
  const failures = async () => (await retentionFailures.get()).values[0].value;

  /** Runs a loop whose first kind has these ends, one statement after the other. @returns the most rows of each statement, and of the second kind */
  async function run(ends: (Deleted | Error)[]): Promise<number[][]> {
    const [first, second]: [number[], number[]] = [[], []];
    const loop = new DeletionLoop([
      {
        name: 'first',
        deleteSome: async (most) => {
          const end = ends[first.push(most) - 1];
          if (end instanceof Error) throw end;
          return end;
        },
      },
      { name: 'second', deleteSome: async (most) => (second.push(most), { deleted: 0, more: false }) },
    ]);
    loop.start();
    await eventually(() => first.length === ends.length);
    await loop.stop();
    return [first, second];
  }
  const more = { deleted: 1, more: true };
  const done = { deleted: 0, more: false };

  it('repeats a statement with more rows while it finds more, and then goes on with the next kind', async () => {
    expect(await run([more, more, done])).toEqual([[64, 128, 256], [64]]);
  });

  it('tries again with half of the rows, which is no failure yet', async () => {
    const before = await failures();
    expect(await run([new Error('too many'), new Error('too many'), more, done])).toEqual([[64, 32, 16, 32], [64]]);
    expect(await failures()).toBe(before);
  });

  it('counts a failure when not even one row can be deleted, and goes on with the next kind', async () => {
    const before = await failures();
    const none = Array.from({ length: 7 }, () => new Error('corrupted'));
    expect(await run(none)).toEqual([[64, 32, 16, 8, 4, 2, 1], [64]]);
    expect(await failures()).toBe(before + 1);
  });

  it('ends when the database is away', async () => {
    expect(await run([Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })])).toEqual([[64], []]);
  });
});
