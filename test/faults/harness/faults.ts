import { connect, type ConfirmChannel } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import type { Cluster, Node } from './cluster';
import { BASIC_ACK, type FaultProxy, type Inspector } from './fault-proxy';
import { lasting, type Fault, type FaultContext } from './run-fault';
import type { Workload } from './workload';

/** First bytes of AMQP methods on the wire: class, number, and the bytes that follow in our frames. */
const PUBLISH_REPLY = Buffer.concat([Buffer.from([0, 60, 0, 40, 0, 0, 7]), Buffer.from('replies')]);
const PUBLISH_COMMAND = Buffer.concat([Buffer.from([0, 60, 0, 40, 0, 0, 5]), Buffer.from('calls')]);
/** Names of the prepared statements that store or change notifications. */
const STATEMENTS = {
  any: ['insert-notifications', 'insert-known-notifications'],
  'a deletion': ['delete-notifications-by-id'],
  '"mark as read"': ['update-readings', 'mark-up-to'],
};

/** Number of commands that are published together. */
const PORTION = 100;

/** Ends a writer at a random moment and starts it again, while the other one goes on. */
export const killWriters = (times: number, ratePerSecond: number): Fault => ({
  name: `SIGKILL of a writer, ${times} times, at ${ratePerSecond} calls a second`,
  share: 0.99,
  ratePerSecond,
  async inject({ cluster, random, workload }) {
    const starts: number[] = [];
    for (let time = 0; time < times; time++) {
      const { process } = random.pick(cluster.writers);
      await workload.answers(random.between(10, Math.ceil(workload.ratePerSecond)));
      await process.stop('SIGKILL');
      const from = performance.now();
      await process.start();
      starts.push(performance.now() - from);
    }
    const mean = starts.reduce((sum, ms) => sum + ms, 0) / times / 1000;
    return `${workload.ratePerSecond.toFixed()} calls a second; a writer starts in ${mean.toFixed(1)} s`;
  },
});

/** Thousands of commands are in the queue and hundreds in the memory of the writers, and no caller will repeat them. */
export const killWritersOfBacklog = (commands: number, times: number): Fault => ({
  name: `SIGKILL of a writer, ${times} times, with ${commands} commands that nobody waits for`,
  async inject({ cluster, random, workload }) {
    const connection = await connect(cluster.broker.url);
    const channel = await connection.createConfirmChannel();
    const published = publishAll(channel, workload, commands);
    for (let time = 0; time < times; time++) {
      const { process } = random.pick(cluster.writers);
      await workload.stored(Math.floor(((time + 1) * commands) / (times + 2)));
      await process.stop('SIGKILL');
      await process.start();
    }
    await published;
    await connection.close();
    await workload.stored(commands);
  },
});

/** Publishes in portions, so that the test process has time for other answers. */
async function publishAll(channel: ConfirmChannel, workload: Workload, commands: number): Promise<void> {
  for (let published = 0; published < commands; published += PORTION) {
    const portion = Array.from({ length: PORTION }, () => workload.publish(channel, workload.newNotification()));
    await Promise.all(portion);
  }
}

export const killGateway = (times: number): Fault => ({
  name: `SIGKILL of the gateway, ${times} times`,
  allowed: [0, 503, 504],
  async inject({ cluster, random, workload }) {
    for (let time = 0; time < times; time++) {
      await workload.answers(random.between(30, 100));
      await cluster.gateway.process.stop('SIGKILL');
      await cluster.gateway.process.start();
    }
  },
});

/** A server loses its power, and gets it back after calls have failed. */
export const killServer = (server: 'broker' | 'database', name: string, times: number): Fault => ({
  name: `SIGKILL of ${name}, ${times} times`,
  async inject({ cluster, random, workload }) {
    for (let time = 0; time < times; time++) {
      await workload.answers(random.between(30, 100));
      await cluster[server].order('kill');
      await workload.asks(random.between(20, 100));
      await cluster[server].order('start');
    }
  },
});

export const killEverything = (times: number): Fault => ({
  name: `SIGKILL of everything at once, ${times} times`,
  allowed: [0, 503, 504],
  async inject({ cluster, random, workload }) {
    for (let time = 0; time < times; time++) {
      await workload.answers(random.between(50, 100));
      const processes = cluster.nodes.map(({ process }) => process);
      await Promise.all([
        ...processes.map((process) => process.stop('SIGKILL')),
        cluster.broker.order('kill'),
        cluster.database.order('kill'),
      ]);
      await Promise.all([cluster.broker.order('start'), cluster.database.order('start')]);
      await Promise.all(processes.map((process) => process.start()));
    }
  },
});

/**
 * Ends connections exactly at critical bytes, `times` times.
 *
 * @param find returns the verdict for bytes; every verdict except `pass` is a strike
 */
async function strike({ workload }: FaultContext, proxies: FaultProxy[], times: number, find: Inspector): Promise<void> {
  let struck = 0;
  let armed = true;
  for (const proxy of proxies) {
    proxy.inspector = (bytes, direction, link) => {
      // Always call find(), because its notes about a link must be complete for the next strike.
      const verdict = find(bytes, direction, link);
      if (verdict === 'pass' || !armed) return 'pass';
      armed = false;
      struck++;
      return verdict;
    };
  }
  for (let time = 1; time <= times; time++) {
    await eventually(() => struck === time, 20_000);
    await workload.answers(10);
    armed = time < times;
  }
  for (const proxy of proxies) proxy.heal();
}

const toDatabase = ({ writers }: Cluster) => writers.flatMap((writer) => writer.toDatabase ?? []);
const toBroker = (nodes: Node[]) => nodes.map((node) => node.toBroker);

/** PostgreSQL sends the answer only after the commit of the statement, which is its own transaction. */
export const cutAfterCommit = (times: number, of: keyof typeof STATEMENTS = 'any'): Fault => ({
  name: `link cut between COMMIT ${of === 'any' ? '' : `of ${of} `}and its answer, ${times} times`,
  inject: (context) =>
    strike(context, toDatabase(context.cluster), times, (bytes, direction, link) => {
      if (direction === 'toServer') {
        if (STATEMENTS[of].some((name) => bytes.includes(name))) link.note = 'statement';
        return 'pass';
      }
      const isAnswer = link.note === 'statement';
      link.note = undefined;
      return isAnswer ? 'cut' : 'pass';
    }),
});

export const cutBeforeAck = (times: number): Fault => ({
  name: `link cut between COMMIT and ack, ${times} times`,
  share: 0.95,
  inject: (context) =>
    strike(context, toBroker(context.cluster.writers), times, (bytes, direction) =>
      direction === 'toServer' && bytes.includes(BASIC_ACK) ? 'cut' : 'pass',
    ),
});

export const dropReplies = (times: number): Fault => ({
  name: `replies dropped, ${times} times`,
  inject: (context) =>
    strike(context, toBroker(context.cluster.writers), times, (bytes, direction) =>
      direction === 'toServer' && bytes.includes(PUBLISH_REPLY) ? 'cut' : 'pass',
    ),
});

/** The command is already sent when the gateway loses the broker. */
export const cutAfterPublish = (times: number): Fault => ({
  name: `link cut behind a command that the gateway published, ${times} times`,
  inject: (context) =>
    strike(context, toBroker([context.cluster.gateway]), times, (bytes, direction, link) => {
      if (direction === 'toClient' && link.note === 'published') return 'cut';
      if (direction === 'toServer' && bytes.includes(PUBLISH_COMMAND)) link.note = 'published';
      return 'pass';
    }),
});

/** Most pieces of bytes, of all links, between two cuts: about as many as in a second of load. */
const MOST_PIECES = 400;

/** Nobody has chosen the moments: between any two steps of a call, in any process. Latency makes the time between the steps longer. */
export const cutAnywhere = (times: number): Fault => ({
  name: `a connection cut between any two of its steps, ${times} times`,
  async inject(context) {
    const { cluster, random } = context;
    for (const link of cluster.links) link.change({ latencyMs: 10, jitterMs: 5 });
    let left = random.between(1, MOST_PIECES);
    await strike(context, cluster.links, times, () => {
      if (--left > 0) return 'pass';
      left = random.between(1, MOST_PIECES);
      return random.pick(['cut', 'reset']);
    });
  },
});

/** Frozen processes keep their connections and their work. They continue after all callers have given up. */
export const pause = (
  name: string,
  ms: number,
  stop: (cluster: Cluster) => unknown,
  go: (cluster: Cluster) => unknown,
): Fault => ({
  name: `SIGSTOP of ${name}, ${ms / 1000} s`,
  expected: 504,
  async inject({ cluster }) {
    await stop(cluster);
    await lasting(ms);
    await go(cluster);
  },
});

/** Longer than the deadline of calls: all commands in the queue are too late when the writers start, and no caller waits for them. */
export const expireUnconsumed = (ms: number): Fault => ({
  name: `no writer for ${ms / 1000} s`,
  expected: 504,
  async inject({ cluster, workload }) {
    const writers = cluster.writers.map(({ process }) => process);
    expect(await Promise.all(writers.map((process) => process.stop('SIGTERM')))).toEqual(writers.map(() => 0));
    const from = performance.now();
    await lasting(ms);
    if (workload.since(from).length === 0) throw new Error('nothing was answered meanwhile');
    await Promise.all(writers.map((process) => process.start()));
  },
});

export const stall = (
  name: string,
  ms: number,
  links: (cluster: Cluster) => FaultProxy[],
  stalledLinks: 'resume' | 'lose' = 'resume',
): Fault => ({
  name: `black hole between ${name}, ${ms / 1000} s${stalledLinks === 'lose' ? ', connections lost in it' : ''}`,
  expected: 504,
  async inject({ cluster }) {
    for (const link of links(cluster)) link.stall();
    await lasting(ms);
    for (const link of links(cluster)) link.heal(stalledLinks);
  },
});

/** A process gives up a connection to the broker after 8 s of silence, and the broker sends a frame every 2.5 s. */
const FOUND_WITHIN_S = 12;

/** A process can notice a dead link only by its silence. */
export const findBlackHoles: Fault = {
  name: 'black holes between every service and the broker, until they are found',
  async inject({ cluster }) {
    const from = performance.now();
    for (const link of toBroker(cluster.nodes)) link.stall();
    const found = await Promise.all(
      cluster.nodes.map(async ({ process }) => {
        const lines = process.output.length;
        await eventually(() => process.output.slice(lines).some((line) => line.includes('connection lost')), 60_000);
        return { app: process.app, seconds: (performance.now() - from) / 1000 };
      }),
    );
    for (const link of toBroker(cluster.nodes)) link.heal();
    const late = found.filter(({ seconds }) => seconds > FOUND_WITHIN_S);
    if (late.length > 0) throw new Error(`found later than within ${FOUND_WITHIN_S} s: ${JSON.stringify(late)}`);
    return `found within ${Math.max(...found.map(({ seconds }) => seconds)).toFixed(1)} s`;
  },
};

/** All links are slow and split the data, and sometimes a connection is reset. */
export const badWeather = (resets: number): Fault => ({
  name: `latency of 100 ± 50 ms in every link, sliced, ${resets} resets`,
  allowed: [503, 504],
  async inject({ cluster, random }) {
    for (const link of cluster.links) link.change({ latencyMs: 50, jitterMs: 25, sliceBytes: 1400 });
    for (let reset = 0; reset < resets; reset++) {
      await lasting(random.between(500, 1500));
      random.pick(cluster.links).cut('reset');
    }
    for (const link of cluster.links) link.heal();
  },
});
