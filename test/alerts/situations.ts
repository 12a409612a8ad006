import { connect, type ConfirmChannel } from 'amqplib';
import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import type { ServiceProcess } from '@app/testing/system/service-process';
import { Caller } from '../faults/harness/caller';
import type { Cluster } from '../faults/harness/cluster';
import { lasting } from '../faults/harness/run-fault';
import { supervise } from '../faults/harness/supervise';
import type { Load } from './load';
import type { Target } from './recording';

export interface Stage {
  cluster: Cluster;
  load: Load;
  /** The processes whose metrics are read now. */
  targets: Target[];
  /** A writer with other settings takes the place of the usual one, until its return function is called. */
  replaceWriter(env: Record<string, string>): Promise<() => Promise<void>>;
}

/** A fault, and the alerts that it has to cause. */
export interface Situation {
  name: string;
  alerts: string[];
  /** Number of readings during the fault, and the seconds between them. Default 6 and 2. */
  readings?: number;
  everySeconds?: number;
  /** Causes it, and resolves when it shows. @returns what ends it, and resolves when everything works again */
  begin(stage: Stage): Promise<() => Promise<void>>;
}

/** Resolves when a process has a series that begins so, with a value above this. */
const shows = (process: ServiceProcess, series: string, above = 0, timeoutMs = 90_000) =>
  eventually(
    async () => {
      const lines = (await process.metrics()).split('\n').filter((line) => line.startsWith(series));
      return lines.some((line) => Number(line.slice(line.lastIndexOf(' '))) > above);
    },
    timeoutMs,
    500,
  );

async function withChannel<T>(url: string, work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
  const connection = await connect(url);
  try {
    return await work(await connection.createConfirmChannel());
  } finally {
    await connection.close();
  }
}

const notification = (more: object = {}) =>
  Buffer.from(
    JSON.stringify({
      organizationId: 'org',
      documentId: 'doc',
      actionUser: { userId: 'actor' },
      displayHeadlineMessageTemplate: 'Hello',
      ...more,
    }),
  );
const AS_DEMO = { headers: { 'x-api-key': 'demo-key' } };

const usersGone: Situation = {
  name: 'users-service-gone',
  alerts: ['ServiceMissing', 'DependencyAway', 'CallsFailing'],
  async begin({ cluster }) {
    const { users, gateway } = cluster;
    await users.process.stop('SIGKILL');
    await eventually(async () => (await gateway.process.metrics()).includes('dependency_up{dependency="users"} 0'), 30_000, 200);
    return () => users.process.start().then(() => undefined);
  },
};

const databaseGone: Situation = {
  name: 'database-gone',
  alerts: ['DependencyAway', 'CallsFailing', 'CallsSlow'],
  async begin({ cluster }) {
    await cluster.database.order('stop');
    await shows(cluster.gateway.process, 'http_request_seconds_count{route="/v1/notifications/add",status="503"}', 5);
    return () => cluster.database.order('start').then(() => undefined);
  },
};

const memoryAlarm: Situation = {
  name: 'broker-short-of-memory',
  alerts: ['BrokerBlocked', 'DependencyAway', 'CallsFailing'],
  async begin({ cluster }) {
    await cluster.broker.order('memory alarm on');
    await shows(cluster.gateway.process, 'rabbitmq_blocked');
    return () => cluster.broker.order('memory alarm off').then(() => undefined);
  },
};

const commandsNotConsumed: Situation = {
  name: 'commands-not-consumed',
  alerts: ['QueueNotConsumed', 'QueueFilling', 'CallsFailing', 'CallsSlow'],
  async begin(stage) {
    const { cluster } = stage;
    const giveBack = await stage.replaceWriter({ NOTIFICATIONS_QUEUES: 'queries,events' });
    await withChannel(cluster.broker.url, async (channel) => {
      for (let sent = 0; sent < 30_000; sent++) {
        channel.publish('commands', 'notifications.add.v1', notification(), AS_DEMO);
        if (sent % 1000 === 999) await channel.waitForConfirms();
      }
    });
    return async () => {
      await giveBack();
      await eventually(async () => (await cluster.waiting('commands')) < 10, 120_000, 200);
    };
  },
};

const commandsLate: Situation = {
  name: 'commands-late',
  alerts: ['QueueFilling'],
  async begin(stage) {
    const { cluster } = stage;
    // More than a writer that handles few at a time gets rid of in the recording.
    const giveBack = await stage.replaceWriter({ NOTIFICATIONS_COMMAND_PREFETCH: '2' });
    // Any account may publish for this tenant.
    const headers = { 'x-api-key': cluster.tenants[1]['x-svc-api-key'] };
    const options = { headers, timestamp: Math.floor(Date.now() / 1000) - 600 };
    await withChannel(cluster.broker.url, async (channel) => {
      for (let sent = 0; sent < 3000; sent++) {
        channel.publish('commands', 'notifications.add.v1', notification(), { ...options, messageId: `late ${sent}` });
        if (sent % 1000 === 999) await channel.waitForConfirms();
      }
    });
    await shows(
      stage.targets.find(({ job }) => job === 'notifications')!.process,
      'rabbitmq_command_age_seconds_count{queue="notifications.commands.0"}',
    );
    return async () => {
      await giveBack();
      await eventually(async () => (await cluster.waiting('commands')) < 10, 120_000, 200);
    };
  },
};

const tableLocked: Situation = {
  name: 'table-locked-with-a-small-pool',
  alerts: ['CallsSlow', 'CallsFailing', 'CallsRefused', 'PoolExhausted'],
  async begin(stage) {
    const { cluster, load } = stage;
    const giveBack = await stage.replaceWriter({ DATABASE_POOL_SIZE: '3', NOTIFICATIONS_QUERY_PREFETCH: '7' });
    const client = new Client({ connectionString: cluster.database.url });
    await client.connect();
    await client.query('BEGIN; LOCK TABLE notifications.recipients IN ACCESS EXCLUSIVE MODE');
    load.workers = 80;
    await shows(cluster.gateway.process, 'gateway_rate_limited_total{limit="in_flight"}');
    await shows(stage.targets.find(({ job }) => job === 'notifications')!.process, 'database_pool_waiting');
    return async () => {
      load.workers = load.usual;
      await client.query('ROLLBACK');
      await client.end();
      await giveBack();
    };
  },
};

const eventsRefused: Situation = {
  name: 'own-events-not-taken',
  alerts: ['OutboxStuck', 'QueueNotConsumed'],
  async begin(stage) {
    const { cluster } = stage;
    await cluster.management.limitQueue('notifications.events', 5);
    const giveBack = await stage.replaceWriter({ NOTIFICATIONS_QUEUES: 'commands,queries' });
    await shows(cluster.users.process, 'outbox_oldest_seconds', 30);
    return async () => {
      await cluster.management.delete('policies/%2F/limit');
      await giveBack();
      await eventually(async () => (await cluster.users.process.metrics()).includes('\noutbox_oldest_seconds 0\n'), 60_000, 500);
    };
  },
};

const listenerFull: Situation = {
  name: 'queue-of-a-listener-full',
  alerts: ['EventsLost'],
  async begin({ cluster }) {
    await withChannel(cluster.broker.url, async (channel) => {
      const limits = { 'x-max-length': 1, 'x-overflow': 'reject-publish' };
      await channel.assertQueue('listener.full', { arguments: limits });
      await channel.bindQueue('listener.full', 'events', '#');
    });
    const { writers } = cluster;
    await shows(writers[0].process, 'events_refused_total');
    return () => withChannel(cluster.broker.url, (channel) => channel.deleteQueue('listener.full')).then(() => undefined);
  },
};

const manyRefused: Situation = {
  name: 'refused-commands-without-end',
  alerts: ['LettersDropped'],
  async begin({ cluster }) {
    const { process } = cluster.writers[0];
    const dropped = async () => Number(/^rabbitmq_letters_dropped_total (\d+)$/m.exec(await process.metrics())?.[1] ?? 0);
    const before = await dropped();
    let [over, published] = [false, 0];
    // A valid message up to its first field. Fifty of them are more than an account may leave in an hour.
    const body = notification({ organizationId: 1, displayBodyMessage: 'x'.repeat(200_000) });
    const publishing = withChannel(cluster.broker.url, async (channel) => {
      while (!over) {
        for (let sent = 0; sent < 5; sent++) channel.publish('commands', 'notifications.add.v1', body, AS_DEMO);
        await channel.waitForConfirms();
        published += 5;
        // Fifty a second: a load at a fixed rate, which waits for nothing.
        await lasting(100);
      }
    });
    await shows(process, 'rabbitmq_letters_dropped_total');
    return async () => {
      over = true;
      await publishing;
      await withChannel(cluster.broker.url, async (channel) => {
        // The writer goes on with what it has, and drops letters until then.
        const kept = async () => (await channel.checkQueue('notifications.commands.refused')).messageCount;
        await eventually(async () => (await kept()) + (await dropped()) - before >= published, 120_000, 500);
        await channel.purgeQueue('notifications.commands.refused');
      });
    };
  },
};

const erasureHeld: Situation = {
  name: 'row-locked-that-an-erasure-deletes',
  alerts: ['DeletionStuck'],
  async begin({ cluster }) {
    const caller = new Caller(cluster);
    await caller.untilDone('users/add', { organizationId: 'org', users: [{ userId: 'leaver' }] });
    const client = new Client({ connectionString: cluster.database.url });
    await client.connect();
    await client.query(`BEGIN; SELECT FROM users.organization_members WHERE user_id = 'leaver' FOR UPDATE`);
    await caller.untilDone('users/data/delete', { userIds: ['leaver'] });
    // The recording takes seconds, and the alert half an hour.
    await cluster.sql.query(`UPDATE users.erasures SET requested_at = requested_at - interval '1 hour'`);
    await shows(cluster.users.process, 'erasure_oldest_seconds', 1800);
    return async () => {
      await client.query('ROLLBACK');
      await client.end();
      await eventually(
        async () => (await cluster.writers[0].process.metrics()).includes('\nerasure_oldest_seconds 0\n'),
        60_000,
        500,
      );
    };
  },
};

const POISONS = 5;

const crashLoop: Situation = {
  name: 'command-that-ends-its-process',
  alerts: ['ProcessRestarting', 'DeadLetters'],
  readings: 12,
  everySeconds: 15,
  async begin({ cluster }) {
    const stop = supervise(cluster.writers.map(({ process }) => process));
    const poison = notification({ displayBodyMessage: 'the poison pill' });
    await withChannel(cluster.broker.url, async (channel) => {
      // One alone is given up within a minute.
      for (let number = 0; number < POISONS; number++)
        channel.publish('commands', 'notifications.add.v1', poison, {
          persistent: true,
          messageId: `poison ${number}`,
          ...AS_DEMO,
        });
      await channel.waitForConfirms();
    });
    return async () => {
      await eventually(async () => (await cluster.waiting('dead')) === POISONS, 240_000, 200);
      await stop();
      await withChannel(cluster.broker.url, (channel) => channel.purgeQueue('notifications.commands.crashed'));
    };
  },
};

export const SITUATIONS: Situation[] = [
  usersGone,
  databaseGone,
  memoryAlarm,
  commandsNotConsumed,
  commandsLate,
  tableLocked,
  eventsRefused,
  listenerFull,
  manyRefused,
  erasureHeld,
  crashLoop,
];
