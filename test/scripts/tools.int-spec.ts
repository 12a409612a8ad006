import { execFile } from 'node:child_process';

const WRONG = 'https://user:secret@127.0.0.1/';

/** Each tool for operators, with URLs that none of them takes. In dist/, because that is what operators run. */
describe.each([
  ['scripts/tool.mjs', 'keys', 'list'],
  ['scripts/tool.mjs', 'events', 'republish'],
  ['scripts/tool.mjs', 'copy', 'rebuild'],
  ['scripts/tool.mjs', 'tenants', 'remove', 'key', '--yes'],
  ['scripts/tool.mjs', 'accounts', 'list'],
  ['scripts/tool.mjs', 'dead-letters', 'list'],
  ['scripts/setup.mjs', 'topology'],
])('%s %s', (script, ...words) => {
  it('says with --json on stderr why it failed, as JSON, and exits 1', async () => {
    const { code, stdout, stderr } = await run([script, ...words, '--json']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const [first, ...others] = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { error: string });
    expect(first?.error).toMatch(/\b(AMQP|DATABASE)_URL must be a URL that starts with (amqp|postgres):/);
    expect(others).toEqual(
      script === 'scripts/setup.mjs' ? [{ error: expect.stringContaining('Setup failed in') as string }] : [],
    );
    expect(stderr).not.toContain('secret');
  });
});

function run(args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env.PATH, AMQP_URL: WRONG, DATABASE_URL: WRONG };
  return new Promise((resolve) =>
    execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    ),
  );
}
