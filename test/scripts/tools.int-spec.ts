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
    const { error } = JSON.parse(stderr) as { error: string };
    expect(error).toMatch(/\b(AMQP|DATABASE)_URL must be a URL that starts with (amqp|postgres):/);
    expect(stderr).not.toContain('secret');
  });
});

it('names every problem of all steps of the set-up at once, and begins none', async () => {
  const { code, stdout, stderr } = await run(['scripts/setup.mjs'], { DEMO_CREDENTIALS: 'perhaps' });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  const [title, ...problems] = stderr.trimEnd().split('\n');
  expect(title).toBe('The configuration is invalid:');
  expect(problems).toEqual([
    expect.stringMatching(/^ {2}- DATABASE_URL is required/),
    expect.stringMatching(/^ {2}- DEMO_CREDENTIALS must be /),
    expect.stringMatching(/^ {2}- AMQP_URL is required/),
  ]);
});

it('names every problem of all processes at once before npm start starts anything, and tries it once', async () => {
  const { code, stdout, stderr } = await run(['scripts/start.mjs', '--operator'], {
    HOME: process.env.HOME ?? '',
    MAX_IN_FLIGHT: 'x',
    USERS_QUERY_PREFETCH: 'y',
    TRUSTED_PUBLISHERS: ',',
    LOG_LEVEL: 'z',
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr.match(/^ {2}- \w+/gm)?.sort()).toEqual(
    ['LOG_LEVEL', 'MAX_IN_FLIGHT', 'TRUSTED_PUBLISHERS', 'USERS_QUERY_PREFETCH'].map((name) => `  - ${name}`),
  );
});

function run(
  args: string[],
  env: Record<string, string> = { AMQP_URL: WRONG, DATABASE_URL: WRONG },
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) =>
    execFile(process.execPath, args, { env: { PATH: process.env.PATH, ...env }, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    ),
  );
}
