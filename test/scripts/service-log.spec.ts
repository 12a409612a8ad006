import { mkdirSync, readFileSync } from 'node:fs';
import { Script, testDirectory } from './script';

describe('the log of a service', () => {
  const directory = testDirectory();
  afterAll(async () => {
    await Script.endAll();
    directory.remove();
  });

  it('is on the terminal with what its lines are about', async () => {
    const program = new Script(
      `
      import { ServiceLog } from './scripts/stack/service-log.mjs';
      const log = new ServiceLog('users', process.argv[1]);
      const common = { level: 40, time: '2026-01-31T12:00:00.000Z', service: 'users', pid: 1, context: 'RabbitMQ' };
      log.write(JSON.stringify({ ...common, msg: 'refused a message', reason: 'A query needs reply_to.', attempts: 2 }) + '\\n');
      log.write(JSON.stringify({ ...common, msg: 'failed', err: { message: 'no room', stack: 'Error: no room' } }) + '\\n');`,
      [directory.path('lines.log')],
    );
    expect((await program.outcome()).stdout.split('\n')).toEqual([
      '[users] WARN refused a message  reason="A query needs reply_to." attempts=2',
      '[users] WARN failed: no room',
    ]);
  });

  it('is on the terminal when its disk is full, which it says once', async () => {
    const program = new Script(`
      import { ServiceLog } from './scripts/stack/service-log.mjs';
      const log = new ServiceLog('users', '/dev/full');
      for (const msg of ['one', 'two']) log.write(JSON.stringify({ level: 50, msg }) + '\\n');`);
    const { code, stdout } = await program.outcome();
    expect([code, ...stdout.split('\n')]).toEqual([
      0,
      expect.stringMatching(/\/dev\/full lacks lines: ENOSPC/),
      '[users] ERROR one',
      '[users] ERROR two',
    ]);
  });

  it('goes on in its file while no next one can be begun', async () => {
    const file = directory.path('users.log');
    mkdirSync(`${file}.1`);
    const program = new Script(
      `import { ServiceLog } from './scripts/stack/service-log.mjs';
      const log = new ServiceLog('users', process.argv[1], () => '');
      for (const text of ['x'.repeat(11 * 1024 * 1024), 'next']) log.write(text + '\\n');`,
      [file],
    );
    expect((await program.outcome()).code).toBe(0);
    expect(readFileSync(file, 'utf8').slice(-6)).toBe('\nnext\n');
  });
});
