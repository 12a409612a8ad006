import { Script } from './script';

afterEach(() => Script.endAll());

/** A script whose work and cleaning are these functions. */
const script = (work: string, clean: string) =>
  new Script(`
    import { runToEnd } from './scripts/checkout/run-to-end.mjs';
    await runToEnd(${work}, ${clean});`);

const CANNOT_CLEAN = `() => { throw new Error('cannot clean'); }`;

describe('a script that runs to its end', () => {
  it.each([
    ['0 after work', '() => undefined', '() => {}', 0, ''],
    ['the code of the work', '() => 3', '() => {}', 3, ''],
    ['1 after a failure, which it shows', '() => { throw new Error("cannot work"); }', '() => {}', 1, 'cannot work'],
    ['1 when it cannot clean, which it shows', '() => 0', CANNOT_CLEAN, 1, 'cannot clean'],
    ['the code of the work when it cannot clean either', '() => 3', CANNOT_CLEAN, 3, 'cannot clean'],
  ])('ends with %s', async (_, work, clean, code, shown) => {
    const outcome = await script(work, clean).outcome();
    expect([outcome.code, outcome.stderr.trim()]).toEqual([code, shown]);
  });

  it('cleans after a signal, and ends with 130', async () => {
    const work = `() => { process.kill(process.pid, 'SIGTERM'); return new Promise(() => setInterval(() => {}, 1000)); }`;
    const outcome = await script(work, '(code) => console.log(code)').outcome();
    expect([outcome.code, outcome.stdout, outcome.stderr]).toEqual([130, '130', '']);
  });
});
