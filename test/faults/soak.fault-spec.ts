import { endConnections, fullQueue, recreateQueue } from './harness/broker-faults';
import { Cluster } from './harness/cluster';
import {
  badWeather,
  cutAfterCommit,
  cutAfterPublish,
  cutBeforeAck,
  dropReplies,
  expireUnconsumed,
  killEverything,
  killGateway,
  killServer,
  killWriters,
  killWritersOfBacklog,
  pause,
  stall,
} from './harness/faults';
import { Random, seedOfRun } from './harness/random';
import { runFault } from './harness/run-fault';

const FAULTS = [
  killWriters(3, 100),
  killWritersOfBacklog(3000, 2),
  killGateway(1),
  killServer('broker', 'the broker', 1),
  killServer('database', 'PostgreSQL', 1),
  killEverything(1),
  cutAfterCommit(5),
  cutBeforeAck(5),
  dropReplies(5),
  cutAfterPublish(5),
  recreateQueue(1),
  endConnections(1),
  fullQueue(20),
  expireUnconsumed(6000),
  badWeather(5),
  pause(
    'the broker',
    6000,
    ({ broker }) => broker.order('pause'),
    ({ broker }) => broker.order('resume'),
  ),
  stall('a writer and the broker', 6000, ({ writers }) => writers.slice(0, 1).map((writer) => writer.toBroker)),
  stall('the writers and PostgreSQL', 6000, ({ writers }) => writers.flatMap((writer) => writer.toDatabase ?? []), 'lose'),
];

/** Set by npm run test:faults -- --soak. */
const soakMs = Number(process.env.FAULT_SOAK_SECONDS) * 1000;

describe('soak', () => {
  const seed = seedOfRun();
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start(new Random(seed), { writers: 2 });
  });
  afterAll(() => cluster?.remove(), 60_000);

  it(
    'one fault after the other on the same system, until the time is over',
    async () => {
      const order = Random.for(seed, 'order');
      const until = performance.now() + soakMs;
      for (let number = 1; performance.now() < until; number++) {
        const fault = order.pick(FAULTS);
        const violations = await runFault(cluster, fault, Random.for(seed, `${number}`));
        expect({ FAULT_SEED: seed, number, fault: fault.name, violations }).toEqual({
          FAULT_SEED: seed,
          number,
          fault: fault.name,
          violations: [],
        });
      }
    },
    soakMs + 600_000,
  );
});
