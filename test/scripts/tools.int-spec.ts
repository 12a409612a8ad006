import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, cpSync, mkdtempSync, openSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

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

it.each([
  ['keys list', 'USERS_DATABASE_URL or DATABASE_URL'],
  ['accounts list', 'AMQP_URL'],
  ['dead-letters list', 'AMQP_URL'],
])('%s says what to run when nothing runs and no variable is set', async (command, names) => {
  // In a folder of its own, because a system that runs in this checkout would be taken.
  const folder = mkdtempSync(join(tmpdir(), 'checkout-'));
  cpSync('scripts', join(folder, 'scripts'), { recursive: true });
  symlinkSync(join(process.cwd(), 'dist'), join(folder, 'dist'));
  const { code, stdout, stderr } = await run([join(folder, 'scripts/tool.mjs'), ...command.split(' '), '--json'], {});
  rmSync(folder, { recursive: true });
  const [{ error }, { note }] = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { error?: string; note?: string });
  expect([code, stdout, note]).toEqual([1, '', `Run npm start in another terminal, or set ${names}.`]);
  expect(error).toContain('is required');
});

it('ends its work when a signal reaches the tool alone', async () => {
  const database = createServer().listen(0, '127.0.0.1');
  await once(database, 'listening');
  const { port } = database.address() as AddressInfo;
  const tool = spawn(process.execPath, ['scripts/tool.mjs', 'keys', 'list'], {
    env: { PATH: process.env.PATH, DATABASE_URL: `postgres://u:p@127.0.0.1:${port}/name` },
    stdio: 'ignore',
  });
  const ended = once(tool, 'exit');
  await once(database, 'connection');
  tool.kill('SIGTERM');
  expect(await ended).toEqual([143, null]);
  database.close();
});

it('refuses a wrong rate of copy rebuild before its first step', async () => {
  const { code, stderr } = await run(['scripts/tool.mjs', 'copy', 'rebuild', '--rate', '0500']);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^--rate must be a whole number from 1 to 9999999\. See .*\n$/)]);
});

it.each(['scripts/tool.mjs keys list', 'scripts/setup.mjs'])('%s refuses a Node that is too old in one line', async (command) => {
  const node18 = `data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '18.20.8' })`;
  const { code, stderr } = await run(command.split(' '), { NODE_OPTIONS: `--import "${node18}"` });
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^Node 18\.20\.8 is not supported; install Node 20\.19 .*\n$/)]);
});

it.each(['build-client', 'lint-containers', 'lint-manifests'])('%s has a help, and does nothing else then', async (script) => {
  const { code, stdout, stderr } = await run([`scripts/${script}.mjs`, '--help'], {});
  expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/^(Makes|Checks) [\s\S]*\nExamples:\n/), '']);
});

it.each(['tool.mjs keys list', 'setup.mjs'])('%s says that nothing is built', async (command) => {
  const folder = mkdtempSync(join(tmpdir(), 'checkout-'));
  cpSync('scripts', join(folder, 'scripts'), { recursive: true });
  const [script = '', ...words] = command.split(' ');
  const { code, stderr } = await run([join(folder, 'scripts', script), ...words, '--json']);
  rmSync(folder, { recursive: true });
  const { error } = JSON.parse(stderr) as { error: string };
  expect([code, error]).toEqual([1, expect.stringMatching(/^The project is not built yet/)]);
});

it('takes --upgraded of the set-up for no step that has nothing of it', async () => {
  const { code, stderr } = await run(['scripts/setup.mjs', 'users', '--upgraded']);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^--upgraded is for the step topology\. See /)]);
});

it('refuses one account for two services only where set-up makes the accounts', async () => {
  const services = { USERS_AMQP_URL: 'amqp://app:secret@127.0.0.1', NOTIFICATIONS_AMQP_URL: 'amqp://app:secret@127.0.0.1' };
  const env = { AMQP_URL: 'amqp://admin:secret@127.0.0.1', ...services };
  const byHand = await run(['scripts/setup.mjs', 'accounts'], env);
  expect(byHand).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^RabbitMQ: accounts and their limits stay unchanged\./),
    stderr: '',
  });
  // Before the migrations, which would wait for the database.
  const { code, stdout, stderr } = await run(['scripts/setup.mjs'], {
    ...env,
    RABBITMQ_MANAGEMENT_URL: 'http://127.0.0.1:1',
    DATABASE_URL: 'postgres://admin:secret@127.0.0.1:1/name',
  });
  expect([code, stdout, stderr]).toEqual([
    1,
    '',
    expect.stringContaining('NOTIFICATIONS_AMQP_URL has the account of USERS_AMQP_URL'),
  ]);
});

it('goes on with its work when nobody reads its output any more', async () => {
  const output = "new (require('./dist/libs/runtime/src/tool-output').ToolOutput)()";
  const work = `const output = ${output}; const line = 'x'.repeat(1e6);
    output.progress(line); output.progress(line); setTimeout(() => process.exit(7), 100);`;
  const tool = spawn(process.execPath, ['-e', work], { stdio: ['ignore', 'pipe', 'pipe'] });
  const stderr = text(tool.stderr);
  tool.stdout.once('data', () => tool.stdout.destroy());
  const [code] = (await once(tool, 'exit')) as [number];
  expect([code, await stderr]).toEqual([7, '']);
});

it.each(['keys', 'events', 'tenants', 'accounts', 'dead-letters', 'doctor'])('%s fails when its output is lost', (tool) => {
  // As a file on a full disk.
  const takesNothing = openSync(__filename, 'r');
  const { status, stderr } = spawnSync(process.execPath, ['scripts/tool.mjs', tool, '--help'], {
    env: { PATH: process.env.PATH, AMQP_URL: WRONG, DATABASE_URL: WRONG },
    stdio: ['ignore', takesNothing, 'pipe'],
    encoding: 'utf8',
  });
  closeSync(takesNothing);
  expect([status, stderr]).toEqual([1, 'The output cannot be written: EBADF.\n']);
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
