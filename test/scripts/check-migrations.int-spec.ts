import { spawnSync } from 'node:child_process';

const check = (...args: string[]) =>
  spawnSync(process.execPath, ['scripts/check-migrations.mjs', ...args], {
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });

describe('the check of migrations', () => {
  it('passes: migrations since the last release leave the previous version working', () => {
    expect(check()).toMatchObject({ status: 0, stdout: '' });
  });

  it('fails for one that does not, and names it with the rule', () => {
    const { status, stdout, stderr } = check('--all');
    expect(status).toBe(1);
    const report = `${stdout}${stderr}`;
    expect(report).toContain('notifications-EventTypes1795824000000.sql');
    expect(report).toContain('ban-drop-not-null');
  });
});
