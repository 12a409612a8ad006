import { lasting } from '../../faults/harness/run-fault';
import type { Workload } from '../../faults/harness/workload';
import type { Broker } from './broker-cluster';
import { pause, seconds } from './bounds';
import type { ClusterSystem } from './cluster-system';
import { Reads } from './reads';

export interface FaultContext {
  system: ClusterSystem;
  workload: Workload;
}

/** Moments of `performance.now()`. */
export interface Happened {
  /** Beginning and end of the time in which nothing can be stored. */
  outage?: { from: number; until: number };
  /** From here on the system should recover. */
  repairedAt?: number;
  /** The text of the column `figures`. */
  figures?: string;
}

type Fault = (context: FaultContext) => Promise<Happened | void>;

const COMMANDS = 'notifications.calls';
const QUERIES = 'notifications.calls.queries';
/** Duration of a loss that is not repaired at once. */
const AWAY_MS = 5000;
const PARTITION_MS = 30_000;
const FROZEN_MS = 20_000;
const CUT_OFF_MS = 20_000;
const STANDBY_GONE_MS = 15_000;
/** Set-up waits up to 10 s for the queues whose only node is away. */
const LONGEST_SET_UP_MS = 30_000;
const READS_PER_GATEWAY = 10;

async function killAndRestart({ system, workload }: FaultContext, broker: Broker): Promise<Happened> {
  const victim = await nameOf(system, broker);
  await broker.end('kill');
  await lasting(AWAY_MS);
  const from = performance.now();
  await system.setUp();
  const setUpMs = performance.now() - from;
  if (setUpMs > LONGEST_SET_UP_MS) throw new Error(`set-up took ${seconds(setUpMs)} s while ${victim} was away`);
  await broker.start();
  await system.brokers.complete();
  await workload.answers(30);
  return { figures: `${victim}; set-up meanwhile: ${seconds(setUpMs)} s` };
}

/** The name of a broker, and whether queries have to go to their standby queues while it is away. */
async function nameOf({ brokers }: ClusterSystem, broker: Broker): Promise<string> {
  return (await brokers.nodeOf(QUERIES)) === broker ? `${broker.name} with the queues of queries` : broker.name;
}

/** Runs a fault of one broker, and reads through each gateway by itself meanwhile. */
async function asEachGatewaySeesIt(
  { system, workload }: FaultContext,
  broker: Broker,
  fault: () => Promise<void>,
): Promise<Happened> {
  const { gateways, tenants, brokers } = system;
  const victim = await nameOf(system, broker);
  const index = brokers.brokers.indexOf(broker);
  const where = gateways.map(({ toBrokers }) => (toBrokers[index].openLinks > 0 ? 'connected to it' : 'elsewhere'));
  const readers = gateways.map(({ url }) => new Reads({ gatewayUrl: url, tenants }, workload, READS_PER_GATEWAY));
  for (const reader of readers) reader.start();
  const from = performance.now();
  try {
    await fault();
  } finally {
    await Promise.all(readers.map((reader) => reader.stop()));
  }
  const pauses = readers.map(({ statuses }) => seconds(pause(statuses, from, performance.now())));
  const each = pauses.map((longest, number) => `gateway ${number + 1} (${where[number]}): ${longest} s`);
  return { figures: [victim, ...each].join('; ') };
}

async function restart({ system, workload }: FaultContext, brokers: readonly Broker[]): Promise<void> {
  for (const broker of brokers) {
    await broker.end('stop');
    await broker.start();
    await system.brokers.complete();
    await workload.answers(30);
  }
}

/** Like a deployment of a new version. */
async function restartProcesses({ system, workload }: FaultContext, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  for (const { process } of system.nodes) {
    await process.stop(signal);
    await process.start();
    await workload.answers(30);
  }
}

/** The faults of the rows in `rows.mjs`. Each one resolves when it has ended and everything runs again. */
export const FAULTS: Record<string, Fault> = {
  async killLeader(context) {
    return killAndRestart(context, await context.system.brokers.leaderOf(COMMANDS));
  },

  /** It stays away, because its start takes longer than everything else. */
  async killLeaderOnly({ system, workload }) {
    const leader = await system.brokers.leaderOf(COMMANDS);
    const figures = await nameOf(system, leader);
    await leader.end('kill');
    await workload.answers(200);
    return { figures };
  },

  async killBrokerOfGateway(context) {
    return killAndRestart(context, await context.system.brokers.brokerOf('gateway'));
  },

  async killTwoBrokers({ system, workload }) {
    const { brokers } = system;
    const leader = await brokers.leaderOf(COMMANDS);
    const [other] = brokers.others(leader);
    const from = performance.now();
    await Promise.all([leader.end('kill'), other.end('kill')]);
    await lasting(2 * AWAY_MS);
    const until = performance.now();
    await Promise.all([leader.start(), other.start()]);
    const repairedAt = performance.now();
    await brokers.complete();
    await workload.answers(30);
    return { outage: { from, until }, repairedAt };
  },

  async partition(context) {
    const { brokers } = context.system;
    const leader = await brokers.leaderOf(COMMANDS);
    return asEachGatewaySeesIt(context, leader, async () => {
      brokers.isolate(leader);
      await lasting(PARTITION_MS);
      brokers.rejoin(leader);
      await brokers.complete();
    });
  },

  async freezeBroker(context) {
    const { brokers } = context.system;
    const leader = await brokers.leaderOf(COMMANDS);
    return asEachGatewaySeesIt(context, leader, async () => {
      await leader.server.order('pause');
      await lasting(FROZEN_MS);
      await leader.server.order('resume');
      await brokers.complete();
    });
  },

  restartBrokers: (context) => restart(context, context.system.brokers.brokers),

  async replaceBroker({ system, workload }) {
    const { brokers } = system;
    const leader = await brokers.leaderOf(COMMANDS);
    const [other] = brokers.others(leader);
    // The way of the manual: its members of queues, then the node itself.
    await other.server.order(`rabbitmq-queues shrink ${leader.node}`);
    await leader.end('stop');
    await other.server.order(`rabbitmqctl forget_cluster_node ${leader.node}`);
    await leader.remove();
    await workload.answers(300);
    await brokers.create(leader);
    await other.server.order(`rabbitmq-queues grow ${leader.node} all`);
    await brokers.complete();
    // RabbitMQ 4 has deleted the queues that were on the removed node only.
    await system.setUp();
  },

  killProcesses: (context) => restartProcesses(context, 'SIGKILL'),

  restartProcesses: (context) => restartProcesses(context, 'SIGTERM'),

  async cutOffGateways({ system, workload }) {
    for (const { toBrokers } of system.gateways) {
      for (const link of toBrokers) link.stall();
      await lasting(CUT_OFF_MS);
      for (const link of toBrokers) link.heal('lose');
      await workload.answers(300);
    }
  },

  async restartEverything(context) {
    const { database, brokers } = context.system;
    await restart(context, brokers.brokers);
    await restartProcesses(context, 'SIGTERM');
    const awayMs = await database.restart();
    await context.workload.answers(30);
    return { figures: `PostgreSQL was away for ${seconds(awayMs)} s` };
  },

  async loseStandby({ system: { database }, workload }) {
    const from = performance.now();
    await database.standby?.order('kill');
    await lasting(STANDBY_GONE_MS);
    const until = performance.now();
    await database.standby?.order('start');
    await database.untilFollowed();
    await workload.answers(30);
    const acknowledged = workload.statuses.filter(({ askedAt, status }) => status === 200 && askedAt > from && askedAt < until);
    return { repairedAt: until, figures: `${acknowledged.length} of the calls meanwhile answered 200` };
  },

  async failOver({ system: { database }, workload }) {
    const repairedAt = await database.failOver();
    await workload.answers(300);
    return { repairedAt };
  },
};
