import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { openConnection } from '@app/amqp/connection/open-connection';

const DEAD = 'users.commands.dead';
const PROGRAM = join(process.cwd(), 'dist/libs/rabbitmq-admin/src/dead-letters/dead-letters.main.js');
const ALL_RIGHTS = { configure: '.*', write: '.*', read: '.*' };
const IDS = Array.from({ length: 100 }, (_, index) => `m-${index}`);

describe('npm run dead-letters', () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: ConfirmChannel;
  let directory: string;
  let service: string;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    // Like a service with its own account.
    service = `users-${new URL(broker.url).pathname.slice(1)}`;
    await broker.management.put(`users/${service}`, { password: 'secret', tags: '' });
    await broker.management.put(`permissions/${new URL(broker.url).pathname.slice(1)}/${service}`, ALL_RIGHTS);
    const url = new URL(broker.url);
    url.username = service;
    url.password = 'secret';
    model = await openConnection({ url: url.href, name: 'test' });
    channel = await model.createConfirmChannel();
    directory = await mkdtemp(join(tmpdir(), 'dead-letters-'));
  });

  afterAll(async () => {
    await model?.close();
    await broker?.management.delete(`users/${service}`);
    await broker?.drop();
    if (directory) await rm(directory, { recursive: true });
  });

  beforeEach(async () => {
    await channel.purgeQueue(DEAD);
    await channel.purgeQueue('users.again');
    for (const messageId of IDS) {
      const headers = { 'x-api-key': 'key', 'x-routing-key': 'users.add.v1', 'x-dead-status': 'INTERNAL' };
      channel.publish('dead', DEAD, Buffer.from('{"secret":1}'), { persistent: true, messageId, userId: service, headers });
    }
    await channel.waitForConfirms();
    await eventually(async () => (await ready()) === IDS.length);
  });

  const ready = async () => (await channel.checkQueue(DEAD)).messageCount;

  interface Running {
    child: ChildProcess;
    output: { stdout: string; stderr: string };
    /** Resolves with the exit code after all its output was read. */
    ended: Promise<number | null>;
  }

  function start(args: string, url = broker.url, trusted = `gateway,${service}`): Running {
    const child = spawn(process.execPath, [PROGRAM, ...args.split(' ')], {
      cwd: directory,
      env: { PATH: process.env.PATH, AMQP_URL: url, TRUSTED_PUBLISHERS: trusted },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (data) => (output.stdout += String(data)));
    child.stderr.on('data', (data) => (output.stderr += String(data)));
    return { child, output, ended: once(child, 'close').then(([code]) => code as number | null) };
  }

  async function runToEnd(args: string, url?: string, trusted?: string) {
    const { output, ended } = start(args, url, trusted);
    return { code: await ended, ...output };
  }

  async function takeIds(): Promise<string[]> {
    const ids: string[] = [];
    for (let message = await channel.get(DEAD, { noAck: true }); message; message = await channel.get(DEAD, { noAck: true })) {
      ids.push(message.properties.messageId as string);
    }
    return ids;
  }

  it('prints only the JSON list on stdout', async () => {
    const { code, stdout, stderr } = await runToEnd('list --json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { deadLetters } = JSON.parse(stdout) as { deadLetters: { id: string }[] };
    expect(deadLetters.map(({ id }) => id)).toEqual(IDS);
    expect(stdout).not.toContain('secret');
  });

  it('says everything else on stderr as JSON, with --json', async () => {
    const { code, stdout, stderr } = await runToEnd('replay --id m-0 --dry-run --json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '{"note":"1 would be replayed."}\n' });
    expect(JSON.parse(stdout)).toMatchObject({ id: 'm-0', outcome: 'would be replayed' });
    const error = 'There is no dead letter with the id "none".';
    expect(await runToEnd('show --id none --json')).toEqual({ code: 1, stdout: '', stderr: `${JSON.stringify({ error })}\n` });
  });

  it('trusts only the accounts in TRUSTED_PUBLISHERS', async () => {
    const { stdout, stderr } = await runToEnd('replay --id m-0 --dry-run');
    expect([stdout, stderr]).toEqual([expect.stringContaining('"would be replayed"'), '1 would be replayed.\n']);
    const untrusted = await runToEnd('replay --id m-0 --dry-run', undefined, 'gateway');
    expect(untrusted.stderr).toBe('1 would be kept.\n');
    expect(untrusted.stdout).toContain('its origin is unknown');
  });

  it('loses and reorders nothing when it is killed in the middle', async () => {
    const { child, output, ended } = start('replay --all --rate 10');
    await eventually(() => output.stdout.trim().split('\n').length >= 3);
    child.kill('SIGKILL');
    await ended;
    const replayed = output.stdout.trim().split('\n').length;
    await eventually(async () => (await ready()) >= IDS.length - replayed);
    const left = await takeIds();
    expect(left).toEqual(IDS.slice(IDS.length - left.length));
    // The audit line of the last one is written before the removal.
    expect([replayed - 1, replayed]).toContain(IDS.length - left.length);
  });

  it('ends between two dead letters on SIGTERM', async () => {
    const { child, output, ended } = start('replay --all --rate 10');
    await eventually(() => output.stdout.includes('m-1'));
    child.kill('SIGTERM');
    expect(await ended).toBe(1);
    expect(output.stderr).toContain('Interrupted; the rest is unchanged.');
    expect(await takeIds()).toEqual(IDS.slice(output.stdout.trim().split('\n').length));
  });

  it('writes the audit to the given file, else to .local if it exists', async () => {
    const file = join(directory, 'given.log');
    const given = await runToEnd(`drop --id m-0 --yes --audit ${file}`);
    expect(given).toMatchObject({ code: 0, stderr: '1 dropped.\n' });
    expect(await readFile(file, 'utf8')).toBe(given.stdout);
    expect(JSON.parse(given.stdout)).toMatchObject({ id: 'm-0', outcome: 'dropped', operator: userInfo().username });

    await mkdir(join(directory, '.local'));
    const local = await runToEnd('replay --id m-1');
    expect(await readFile(join(directory, '.local/dead-letters.log'), 'utf8')).toBe(local.stdout);
    await runToEnd('replay --all --dry-run');
    expect(await readFile(join(directory, '.local/dead-letters.log'), 'utf8')).toBe(local.stdout);
    expect(await ready()).toBe(IDS.length - 2);
  });

  it('writes who was shown a body, apart from the result', async () => {
    const file = join(directory, 'shown.log');
    const { code, stdout, stderr } = await runToEnd(`show --id m-0 --audit ${file}`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: await readFile(file, 'utf8') });
    expect(stdout).toContain('secret');
    expect(stderr).not.toContain('secret');
    expect(JSON.parse(stderr)).toMatchObject({ action: 'show', id: 'm-0', outcome: 'shown', operator: userInfo().username });
  });

  it.each(['drop --all --yes', 'show --id m-0'])('does nothing when the audit file cannot be written: %s', async (line) => {
    const { code, stdout, stderr } = await runToEnd(`${line} --audit /nowhere/file`);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^\/nowhere\/file cannot be written: ENOENT/);
    expect(await ready()).toBe(IDS.length);
  });

  it('keeps a letter whose line of audit finds no room on the disk, and says so', async () => {
    const { code, stdout, stderr } = await runToEnd('drop --id m-0 --yes --audit /dev/full');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^The audit cannot be written: ENOSPC.*\. Letter m-0 stays\.\n$/);
    expect(await ready()).toBe(IDS.length);
  });

  it('exits 2 when the command line is wrong, and 0 with --help', async () => {
    expect(await runToEnd('replay')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'replay needs a condition such as --id or --status, or --all. See npm run dead-letters -- --help\n',
    });
    expect(await runToEnd('--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage:') as string });
  });

  it.each([
    ['', 'AMQP_URL is required: a URL that starts with amqp:// or amqps://\n'],
    ['https://user:secret@host/', 'AMQP_URL must be a URL that starts with amqp:// or amqps://\n'],
    ['amqp://user:secret@127.0.0.1:1', 'The broker of AMQP_URL cannot be used: connect ECONNREFUSED 127.0.0.1:1\n'],
  ])('says in one line what is wrong with the broker %j', async (url, stderr) => {
    expect(await runToEnd('list', url)).toEqual({ code: 1, stdout: '', stderr });
  });

  it('reports a wrong password in one line, without the password', async () => {
    const url = new URL(broker.url);
    url.password = 'wrong-secret';
    const { code, stderr } = await runToEnd('list', url.href);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^The broker of AMQP_URL cannot be used: .*ACCESS_REFUSED.*\n$/);
    expect(stderr).not.toContain('wrong-secret');
  });

  it('reports missing queues', async () => {
    const empty = await createTestBroker();
    expect((await runToEnd('list', empty.url)).stderr).toMatch(
      /the queue users.commands.dead does not exist .* run "npm run setup"\n$/,
    );
    await empty.drop();
  });
});
