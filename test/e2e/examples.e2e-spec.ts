import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { Channel, ChannelModel } from 'amqplib';
import { Client } from 'pg';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { System } from '@app/testing/system/system';

const run = promisify(execFile);
const EXAMPLES = join(process.cwd(), 'examples');
// npm test reports languages that are missing on this machine.
const TOOLS = JSON.parse(requiredEnv('TEST_EXAMPLE_TOOLS')) as {
  python?: string;
  shell: boolean;
  go?: Record<string, string>;
  java?: string;
};
const OPERATIONS = [
  ...['users.add.v1', 'users.delete.v1', 'users.erase.v1', 'users.get.v1', 'documents.set.v1'],
  ...['notifications.add.v1', 'notifications.inbox.v1', 'notifications.update.v1', 'notifications.delete.v1'],
].join();
const LANGUAGES = ['node', 'typescript', ...(['python', 'shell', 'go', 'java'] as const).filter((language) => TOOLS[language])];
/** amqp-publish waits for no confirm, and the shell calls over HTTP. */
const WITH_CONFIRMS = LANGUAGES.filter((language) => language !== 'shell');

/** The examples, run like by another team: with an account that the operator has created. */
describe('the examples', () => {
  let broker: TestBroker;
  let system: System;
  let account: string;
  let env: Record<string, string>;
  let admin: ChannelModel;
  let channel: Channel;
  const directory = mkdtempSync(join(tmpdir(), 'examples-'));
  const listening: { stop: () => Promise<void> }[] = [];

  beforeAll(async () => {
    broker = await createTestBroker();
    const tools = { AMQP_URL: broker.url, RABBITMQ_MANAGEMENT_URL: requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL') };
    const [started, packed] = await Promise.all([
      System.start({ amqpUrl: broker.url }),
      run('npm', ['run', '-s', 'build:client']).then(() => packAndInstall(directory)),
      compileOthers(directory),
    ]);
    system = started;
    expect(packed).toContain('collaboration-backend-client');
    // Queues are named after the account.
    account = 'billing';
    const { stdout } = await run(
      process.execPath,
      [
        ...['scripts/tool.mjs', 'accounts', 'create', account, '--json', '--events', 'user.added.v1', '--replies'],
        ...['--operations', `${OPERATIONS},access.check.v1`],
      ],
      { env: { PATH: process.env.PATH, ...tools } },
    );
    const { url, exchange, queues } = JSON.parse(stdout) as { url: string; exchange: string; queues: string[] };
    // The examples use this key.
    expect(queues).toEqual(['billing.events']);
    env = { BILLING_AMQP_URL: url, COMMANDS_EXCHANGE: exchange, GATEWAY_URL: system.services.gateway.url };
    admin = await openConnection({ url: broker.url, name: 'test' });
    channel = await admin.createChannel();
  });
  afterAll(async () => {
    await Promise.all(listening.map((one) => one.stop()));
    await admin?.close();
    await system?.stop();
    if (account) await broker.management.delete(`users/${account}`);
    await broker?.drop();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Command that starts an example. */
  function commandOf(language: string, example: string): [string, string[]] {
    switch (language) {
      case 'node':
        return [process.execPath, [join(EXAMPLES, `node/${example}.mjs`)]];
      case 'python':
        return [TOOLS.python ?? '', [join(EXAMPLES, `python/${example}.py`)]];
      case 'shell':
        return [join(EXAMPLES, `shell/${example}.sh`), []];
      case 'go':
        return [join(directory, `go-${example}`), []];
      case 'java':
        return ['java', ['-cp', `${directory}:${TOOLS.java}`, example.replace(/^./, (letter) => letter.toUpperCase())]];
      default:
        return [process.execPath, [join(directory, `build/${example}.js`)]];
    }
  }
  async function output(language: string, example: string, more: Record<string, string> = {}): Promise<string[]> {
    const [command, args] = commandOf(language, example);
    const { stdout } = await run(command, args, { env: { PATH: process.env.PATH, ...env, ...more }, timeout: 20_000 });
    return stdout.trim().split('\n');
  }
  /** Starts an example that listens. @returns once it does, with how it will end */
  async function listen(language: string): Promise<{ child: ChildProcess; exited: Promise<unknown[]> }> {
    const [command, args] = commandOf(language, 'listen');
    const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    const lines = createInterface({ input: child.stdout });
    await new Promise<void>((resolve) => lines.on('line', (line) => line === 'listening' && resolve()));
    return { child, exited };
  }
  const ids = async () => {
    const { body } = await system.call('notifications/get', { organizationId: 'acme', documentId: 'plan' });
    return (body.result?.data as { id: string }[]).map(({ id }) => id);
  };

  it.each(LANGUAGES)('publish, in %s, stores one notification even if it runs several times', async (language) => {
    for (let time = 0; time < 2; time++) expect(await output(language, 'publish')).toEqual(['published']);
    const ofLanguage = async () => (await ids()).filter((id) => id.startsWith(language));
    await eventually(async () => (await ofLanguage()).length > 0);
    expect(await ofLanguage()).toHaveLength(1);
    if (language !== 'shell') return;
    // It publishes another operation, too.
    const database = new Client({ connectionString: system.databaseUrl });
    await database.connect();
    const setByShell = `SELECT FROM users.documents WHERE document_id = 'shell' AND access = 'restricted'`;
    await eventually(async () => (await database.query(setByShell)).rowCount === 1).finally(() => database.end());
  });

  it.each(WITH_CONFIRMS)('publish, in %s, says that the account may not, and that there is no queue', async (language) => {
    const failure = (given: Record<string, string>) =>
      output(language, 'publish', given).then(
        () => Promise.reject(new Error('it was published')),
        (error: unknown) => (error as { stderr: string }).stderr,
      );
    const another = env.COMMANDS_EXCHANGE === 'commands.1' ? 'commands.2' : 'commands.1';
    expect(await failure({ COMMANDS_EXCHANGE: another })).toMatch(/ACCESS_REFUSED|The broker account may not publish/);
    const unbound = { BILLING_AMQP_URL: broker.url, COMMANDS_EXCHANGE: 'amq.topic' };
    expect(await failure(unbound)).toMatch(/no queue is bound|UnroutableError/i);
  });

  it.each(WITH_CONFIRMS)('call, in %s, says that there is no queue, and not that the outcome is unknown', async (language) => {
    const called = output(language, 'call', { BILLING_AMQP_URL: broker.url, COMMANDS_EXCHANGE: 'amq.topic' });
    await expect(called).rejects.toMatchObject({ stderr: expect.stringMatching(/UNAVAILABLE|UnroutableError/) as string });
  });

  it.each(WITH_CONFIRMS)('call, in %s, gives what waits a time to expire', async (language) => {
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, env.COMMANDS_EXCHANGE, '#');
    await output(language, 'call');
    const { messageCount } = await channel.checkQueue(queue);
    const expirations: unknown[] = [];
    for (let message = 0; message < messageCount; message++) {
      const got = await channel.get(queue, { noAck: true });
      expirations.push(got && got.properties.expiration);
    }
    await channel.deleteQueue(queue);
    expect(expirations.length).toBeGreaterThan(0);
    expect(expirations).not.toContain(undefined);
  });

  it.each(LANGUAGES)('call, in %s, gets results and an error', async (language) => {
    const [message, error, ...more] = await output(language, 'call');
    // The shell calls over HTTP, whose errors name the path in the body.
    const refused = `INVALID_ARGUMENT: ${language === 'shell' ? 'data.' : ''}users must not be empty`;
    expect([message, error]).toEqual(['User(s) processed successfully.', refused]);
    expect(more).toEqual([
      ...(language === 'typescript' ? ['true organization'] : []),
      '1',
      'Document set successfully.',
      // With the one of the example that publishes, which reaches all members.
      expect.stringMatching(/^[12]$/),
      'Notification deleted.',
      'User removed.',
      'Data deletion process has been initiated.',
    ]);
  });

  it('the bell marks all as read when the page has a time that is in the future for the database', async () => {
    const bell = spawn(process.execPath, [join(EXAMPLES, 'bell/server.mjs')], {
      env: { GATEWAY_URL: system.services.gateway.url, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(bell, 'exit');
    listening.push({
      stop: async () => {
        bell.kill('SIGKILL');
        await exited;
      },
    });
    const [line] = (await once(createInterface({ input: bell.stdout }), 'line')) as [string];
    const response = await fetch(`${line.replace(/^.*(http\S+)\/sign-in.*$/, '$1')}/api/mark-all`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie: 'user=grace' },
      body: JSON.stringify({ upTo: Date.now() + 60_000 }),
    });
    expect([response.status, await response.json()]).toEqual([200, {}]);
  });

  it.each(LANGUAGES.filter((language) => ['node', 'python', 'go'].includes(language)))(
    'listen, in %s, ends with an error when the broker closes its connection',
    async (language) => {
      const { child, exited } = await listen(language);
      await eventually(async () => {
        await broker.management.killConnectionsOf(account);
        return child.exitCode !== null;
      });
      expect(await exited).toEqual([1, null]);
    },
  );

  it.each(LANGUAGES.filter((language) => ['node', 'python', 'go', 'java'].includes(language)))(
    'listen, in %s, ends with an error when its work fails',
    async (language) => {
      const { exited } = await listen(language);
      channel.sendToQueue('billing.events', Buffer.from('no JSON'));
      expect(await exited).toEqual([1, null]);
      await eventually(async () => (await channel.purgeQueue('billing.events')).messageCount > 0);
    },
  );

  it('listen, in typescript, ends its handlers when it is told to stop', async () => {
    const { child, exited } = await listen('typescript');
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });

  it.each(LANGUAGES)('listen, in %s, gets the event of a user', async (language) => {
    const [command, args] = commandOf(language, 'listen');
    const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    listening.push({
      stop: async () => {
        child.kill('SIGKILL');
        await exited;
      },
    });
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    // Not all examples report when they listen, so repeat the event until it arrives.
    let users = 0;
    const line = await eventually(
      async () => {
        await system.call('users/add', { organizationId: 'acme', users: [{ userId: `friend-${users++}-of-${language}` }] });
        return lines.find((one) => one.includes(`of-${language}`));
      },
      20_000,
      200,
    );
    expect(line).toContain('user.added.v1');
  });

  it('install the client with nothing but amqplib, and import it from CommonJS, ES modules and strict TypeScript', async () => {
    const { stdout: tree } = await run('npm', ['ls', '--all', '--parseable', '--omit=dev'], { cwd: directory });
    expect(
      tree
        .trim()
        .split('\n')
        .slice(1)
        .map((path) => basename(path))
        .sort(),
    ).toEqual(['amqplib', 'client']);
    writeFileSync(
      join(directory, 'both.cjs'),
      `const { ApiError } = require('@collaboration-backend/client');
       import('@collaboration-backend/client').then((module) => console.log(module.ApiError === ApiError, typeof module.CollaborationClient));`,
    );
    const { stdout } = await run(process.execPath, ['both.cjs'], { cwd: directory });
    expect(stdout.trim()).toBe('true function');
    const wrong = `import { CollaborationClient } from '@collaboration-backend/client';
      const client = new CollaborationClient({ url: 'amqp://localhost', name: 'x' });
      await client.publish('notifications.get.v1', { organizationId: 'a' });
      await client.publish('users.add.v1', { organizationId: 'a', users: [{ userId: 7 }] });
      await client.listen({ queue: 'x.y', handlers: { 'no.such.v1': () => undefined } });
      await client.call('notifications.get.v1', { organizationId: 'a', documentId: 'd', userId: 'u' });
      await client.call('notifications.get.v1', { organizationId: 'a', locationId: 'l' });`;
    const errors = await compile(directory, 'wrong.ts', wrong);
    expect(errors.match(/wrong\.ts\(\d/g)).toEqual(['wrong.ts(3', 'wrong.ts(4', 'wrong.ts(5', 'wrong.ts(7']);
    const call = readFileSync(join(EXAMPLES, 'typescript/call.ts'), 'utf8');
    const undefinedFields = `
      const { DOCUMENT: documentId, NAME: name } = process.env;
      await client.publish('users.add.v1', { organizationId: 'a', documentId, users: [{ userId: 'a', name }] });
      await client.call('notifications.get.v1', { organizationId: 'a', userId: 'a', pageToken: found.result.pageToken });`;
    const typedData = `
      interface Invoice { number: number; lines: { text: string }[] }
      const notificationSourceData: Invoice = { number: 7, lines: [] };
      const displayHeadlineMessageTemplate = 'Paid';
      const actionUser = { userId: 'a' };
      await client.publish('notifications.add.v1', { organizationId, documentId: 'd', actionUser, displayHeadlineMessageTemplate, notificationSourceData });`;
    // Types of Node do not pass this option.
    const exact = ['--exactOptionalPropertyTypes', '--skipLibCheck'];
    expect(await compile(directory, 'exact.ts', call + undefinedFields + typedData, exact)).toBe('');
    const wider = `import { CollaborationClient } from '@collaboration-backend/client';
      const client = new CollaborationClient({ url: 'amqp://localhost', name: 'x' });
      const { ID: id } = process.env;
      await client.call('users.delete.v1', { organizationId: 'a', userIds: ['u'], documentId: id });
      await client.call('users.erase.v1', { userIds: ['u'], organizationIds: id ? [id] : undefined });
      await client.call('documents.set.v1', { organizationId: 'a', documentId: 'd', folderId: id });
      await client.call('notifications.delete.v1', { organizationId: 'a', documentId: 'd', locationId: id });
      await client.call('notifications.delete.v1', { organizationId: 'a', documentId: 'd', pageToken: id });
      const added = { organizationId: 'a', documentId: 'd', actionUser: { userId: 'a' }, displayHeadlineMessageTemplate: 'h' };
      await client.publish('notifications.add.v1', { ...added, notificationSourceData: { lines: [1], none: undefined } });
      await client.publish('notifications.add.v1', { ...added, notificationSourceData: [1] });
      await client.publish('notifications.add.v1', { ...added, displayHeadlineMessageTemplateData: new Map([['a', 'b']]) });`;
    const refused = await compile(directory, 'wider.ts', wider, exact);
    expect(refused.match(/(?<=wider\.ts\()\d+/g)).toEqual(['4', '5', '6', '7', '11', '12']);
  });
});

/** Compiles the examples in Go and Java, when their tools are there. */
async function compileOthers(directory: string): Promise<void> {
  const { go, java } = TOOLS;
  const env = { ...process.env, ...go, GOCACHE: join(directory, 'go-cache') };
  for (const example of go ? ['publish', 'call', 'listen'] : [])
    await run('go', ['build', '-o', join(directory, `go-${example}`), join(EXAMPLES, `go/${example}.go`)], { env });
  const sources = ['Publish', 'Call', 'Listen'].map((name) => join(EXAMPLES, `java/${name}.java`));
  if (java) await run('javac', ['-d', directory, '-cp', java, ...sources]);
}

/** Installs into an empty folder, from files only: the package of npm pack, and amqplib of this checkout. */
async function packAndInstall(directory: string): Promise<string> {
  const modules = join(process.cwd(), 'node_modules');
  const pack = [
    'pack',
    '--silent',
    '--pack-destination',
    directory,
    join(process.cwd(), 'dist/client'),
    join(modules, 'amqplib'),
  ];
  const { stdout } = await run('npm', pack, { cwd: directory });
  const tarballs = stdout
    .trim()
    .split('\n')
    .map((name) => `./${basename(name)}`);
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }));
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', ...tarballs], { cwd: directory });
  cpSync(join(EXAMPLES, 'typescript'), join(directory, 'src'), { recursive: true });
  const problems = await compile(directory);
  if (problems) throw new Error(problems);
  return stdout;
}

/** Compiles the examples, or a text, with `strict`, with library checks and with more options. @returns the output of the compiler */
async function compile(directory: string, file?: string, text?: string, more: string[] = []): Promise<string> {
  if (file && text) writeFileSync(join(directory, file), text);
  const sources = file ? [file] : ['publish', 'call', 'listen'].map((name) => `src/${name}.ts`);
  const types = ['--typeRoots', join(process.cwd(), 'node_modules/@types'), '--types', 'node'];
  const options = ['--strict', '--target', 'es2023', '--module', 'nodenext', '--ignoreConfig', ...types, ...more];
  const out = file ? ['--noEmit'] : ['--outDir', 'build', '--rootDir', 'src'];
  const tsc = join(process.cwd(), 'node_modules/@typescript/native/bin/tsc');
  return run(process.execPath, [tsc, ...options, ...out, ...sources], { cwd: directory }).then(
    () => '',
    (error: unknown) => (error as { stdout: string }).stdout,
  );
}
