import { gate } from '@app/testing/gate';
import { RunningWork } from './running-work';

const MEBIBYTE = 1024 * 1024;

describe(RunningWork.name, () => {
  it('is bounded by its bytes: more is refused at once, and begins when there is room again', async () => {
    const running = new RunningWork();
    const begun: number[] = [];
    const { open: end, opened: ended } = gate();
    const add = (mebibytes: number) =>
      running.add(Buffer.alloc(mebibytes * MEBIBYTE), () => {
        begun.push(mebibytes);
        return ended;
      });
    const works = [add(64), add(63)];
    await expect(add(1)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    expect(begun).toEqual([64, 63]);
    end();
    await Promise.all(works);
    await add(64);
    expect(begun).toEqual([64, 63, 64]);
  });

  it('takes memory of its own: small bodies are bounded, too', async () => {
    const running = new RunningWork();
    const add = (bytes: number) => running.add(Buffer.alloc(bytes), () => new Promise(() => undefined));
    // Room for two.
    void add(128 * MEBIBYTE - 3 * 1024);
    void add(0);
    void add(0);
    await expect(add(0)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  });

  it('is waited for until it has ended, however it ends', async () => {
    const running = new RunningWork();
    let fail!: (error: Error) => void;
    const work = running.add(Buffer.from(''), () => new Promise<void>((_, reject) => (fail = reject)));
    let isOver = false;
    const over = running.ended().then(() => (isOver = true));
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    fail(new Error('lost'));
    await expect(work).rejects.toThrow('lost');
    await over;
    expect((running as unknown as { works: Set<unknown> }).works.size).toBe(0);
  });
});
