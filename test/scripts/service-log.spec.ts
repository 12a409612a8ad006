import { Script } from './script';

describe('the log of a service', () => {
  afterAll(() => Script.endAll());

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
});
