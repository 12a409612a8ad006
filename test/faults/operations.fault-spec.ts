import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { Cluster } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';
import { describeFaults, type Fault } from './harness/run-fault';
import { Workload } from './harness/workload';

/** Like a deployment: one process after the other; the successor starts before the next one stops. */
const rollingRestart: Fault = {
  name: 'SIGTERM of every process in turn, two of each service',
  share: 1,
  allowed: [],
  async inject({ cluster, workload }) {
    for (const { process } of cluster.nodes) {
      expect(await process.stop('SIGTERM')).toBe(0);
      await process.start();
      await workload.answers(30);
    }
  },
};

/** Like an autoscaler. */
const scaleWriters: Fault = {
  name: 'writers from 1 to 4 and back to 1, by SIGTERM',
  share: 1,
  allowed: [],
  async inject({ cluster, random, workload }) {
    while (cluster.writers.length < 4) await cluster.addWriter(random);
    const [, ...others] = cluster.writers.map(({ process }) => process);
    const stopOthers = async () => {
      for (const process of others) expect((await process.stop('SIGTERM')) ?? 0).toBe(0);
      await workload.answers(100);
    };
    await stopOthers();
    await Promise.all(others.map((process) => process.start()));
    await workload.answers(100);
    await stopOthers();
    await Promise.all(others.map((process) => process.start()));
  },
};

describeFaults('deployment', [rollingRestart, scaleWriters], { gateways: 2, users: 2, writers: 2 });

describe('start orders', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { writers: 1, started: false });
  });
  afterAll(() => cluster?.remove(), 60_000);

  // These orders contain every order of any three of the five parts. Dependencies involve only two or three parts.
  const orders = [
    ['writer', 'gateway', 'broker', 'users', 'database'],
    ['users', 'database', 'gateway', 'writer', 'broker'],
    ['database', 'users', 'broker', 'writer', 'gateway'],
    ['broker', 'gateway', 'database', 'writer', 'users'],
    ['gateway', 'users', 'broker', 'writer', 'database'],
    ['writer', 'database', 'broker', 'gateway', 'users'],
    ['broker', 'users', 'database', 'writer', 'gateway'],
    ['writer', 'users', 'gateway', 'database', 'broker'],
  ] as const;

  it.each(orders.map((order) => [order] as const))(
    'works within 10 s of the last of %j',
    async (order) => {
      const services = { gateway: cluster.gateway, users: cluster.users, writer: cluster.writers[0] };
      await Promise.all([
        ...Object.values(services).map(({ process }) => process.stop('SIGKILL')),
        cluster.broker.order('stop'),
        cluster.database.order('stop'),
      ]);
      for (const part of order) {
        if (part === 'broker' || part === 'database') await cluster[part].order('start');
        else await services[part].process.start({ untilReady: false });
      }
      const completeAt = performance.now();
      const workload = new Workload(cluster, random, 'order');
      await eventually(async () => (await workload.ask(workload.newNotification())).status === 200, 15_000);
      const recoveryMs = performance.now() - completeAt;
      await workload.stop();
      expect({ seed, inTime: recoveryMs < 10_000, recoveryMs }).toEqual({ seed, inTime: true, recoveryMs });
      for (const { process } of cluster.nodes) expect(process.exitCode).toBeUndefined();
      workload.journal.remove();
      report({ fault: `started in the order ${order.join(', ')}`, 'recovery (s)': (recoveryMs / 1000).toFixed(1) });
    },
    120_000,
  );
});
