import { eventually } from '@app/testing/eventually';
import { Cluster } from './cluster';
import { Random, seedOfRun } from './random';
import { describeFaults, report, type Fault } from './run-fault';
import { Workload } from './workload';

/** As a deployment does: one process after the other, its successor before the next. */
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

describeFaults('deployment', [rollingRestart], { gateways: 2, users: 2, writers: 2 });

describe('start orders', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { writers: 1, started: false });
  }, 120_000);
  afterAll(() => cluster.remove(), 60_000);

  const parts = ['broker', 'database', 'gateway', 'users', 'writer'] as const;
  const inRandomOrder = () => parts.map((part) => ({ part, at: random.next() })).sort((a, b) => a.at - b.at);

  it.each(Array.from({ length: 6 }, () => [inRandomOrder().map(({ part }) => part)]))(
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
