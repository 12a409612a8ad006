import { readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { System, type Operation } from '@app/testing/system/system';

const FOLDER = join(process.cwd(), 'deploy/observability');
/** From the first call: the rules are evaluated every 15 s, and a rate needs two scrapes. */
const SHOWS_WITHIN_MS = 60_000;
/** More than a hundredth of the dead letters that a queue may have. */
const LETTERS = 2000;

interface Dashboard {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
}

interface Series {
  metric: Record<string, string>;
  values: [number, string][];
}

const DASHBOARDS = readdirSync(join(FOLDER, 'dashboards')).map(
  (file) => [file, JSON.parse(readFileSync(join(FOLDER, 'dashboards', file), 'utf8')) as Dashboard] as const,
);

/** These appear with the first accident: a lost connection, a full queue, a node that is away, an event that a listener did not take. */
const ONLY_AFTER_ACCIDENTS: ReadonlySet<string> = new Set([
  'Queries asked again: {{reason}}',
  'Messages returned and refused by the broker: returned: {{exchange}}',
  'Messages returned and refused by the broker: refused: {{exchange}}',
  'Connections to the broker: {{connection}}: again, a second',
  'Events published: lost by a listener: {{type}}',
]);

describe('every panel shows data of a real system in a real Prometheus', () => {
  let servers: Record<'broker' | 'database' | 'prometheus', PrivateServer>;
  let system: System;
  let over = false;
  let load: Promise<void>;
  let since: number;

  beforeAll(async () => {
    const [broker, database, prometheus] = await Promise.all([
      PrivateServer.start('rabbitmq'),
      PrivateServer.start('postgres'),
      PrivateServer.start('prometheus', '--rules', join(FOLDER, 'rules.yml')),
    ]);
    servers = { broker, database, prometheus };
    system = await System.start({ amqpUrl: broker.url, databaseUrl: database.url, wholeSetUp: true });
    const targets = Object.entries(system.services).map(([job, { healthPort }]) => ({
      targets: [`127.0.0.1:${healthPort}`],
      labels: { job },
    }));
    const file = join(prometheus.directory, 'targets.json');
    // Replaced as a whole, because Prometheus reads it at any time.
    writeFileSync(`${file}.new`, JSON.stringify(targets));
    renameSync(`${file}.new`, file);
    await leaveLetters(broker.url);
    since = performance.now();
    load = keepCalling();
  });
  afterAll(async () => {
    over = true;
    await load;
    await system?.stop();
    await Promise.all(Object.values(servers ?? {}).map((server) => server.remove()));
  });

  async function leaveLetters(url: string): Promise<void> {
    const connection = await connect(url);
    const channel = await connection.createConfirmChannel();
    for (let number = 0; number < LETTERS; number++) channel.sendToQueue('notifications.commands.dead', Buffer.from('{}'));
    await channel.waitForConfirms();
    await connection.close();
  }

  /** Calls of every kind, the refused ones too, so that each series has a value. */
  async function keepCalling(): Promise<void> {
    const of = (data: object) => ({ organizationId: 'org', ...data });
    const add = of({
      documentId: 'document',
      actionUser: { userId: 'actor' },
      notifyUsers: [{ userId: 'reader' }],
      displayHeadlineMessageTemplate: 'Hello',
    });
    for (let number = 0; !over; number++) {
      const calls: [Operation, object, Record<string, string>?][] = [
        ['users/add', of({ users: [{ userId: `user ${number}` }] })],
        ['notifications/add', add],
        ['notifications/get', of({ userId: 'reader', pageSize: 5 })],
        ['notifications/get', of({})],
        // Refused by users, because the key had another body before, and by notifications.
        ['users/add', of({ users: [{ userId: `user ${number}` }] }), { 'idempotency-key': 'used before' }],
        ['notifications/add', { ...add, documentId: 'unknown', createDocument: false }],
      ];
      await Promise.all(calls.map((call) => system.call(...call)));
    }
  }

  async function ask(expr: string): Promise<Series[]> {
    const now = Date.now() / 1000;
    const query = new URLSearchParams({ query: expr, start: String(now - 20), end: String(now), step: '5' });
    const response = await fetch(`${servers.prometheus.url}/api/v1/query_range?${query.toString()}`);
    const { data } = (await response.json()) as { data?: { result: Series[] } };
    return data?.result.filter(({ values }) => values.some(([, value]) => Number.isFinite(Number(value)))) ?? [];
  }

  it.each(DASHBOARDS)('%s', async (_, { panels }) => {
    const queries = panels.flatMap(({ title, targets }) => targets.map((target) => ({ title, ...target })));
    let without: string[] = [];
    await eventually(
      async () => {
        const answers = await Promise.all(queries.map(async (query) => ({ ...query, series: await ask(query.expr) })));
        without = answers.flatMap(({ title, legendFormat, series }) => {
          const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
          const shown = series.filter(({ metric }) => labels.every((label) => metric[label]));
          return shown.length > 0 ? [] : `${title}: ${legendFormat}`;
        });
        return without.every((one) => ONLY_AFTER_ACCIDENTS.has(one));
      },
      SHOWS_WITHIN_MS - (performance.now() - since),
      2000,
    ).catch(() => undefined);
    expect(without.filter((one) => !ONLY_AFTER_ACCIDENTS.has(one))).toEqual([]);
  });
});
