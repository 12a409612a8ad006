import { SERVICES, letterQueues } from '@app/rabbitmq/topology/topology';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { Autoscaler } from './harness/autoscaler';
import { Load } from './harness/load';
import type { ScaledObject } from './harness/scaled-object';
import { ScalingSystem } from './harness/scaling-system';
import { valueOf } from './harness/sources';

const { SCALING } = process.env;
if (!SCALING) throw new Error('SCALING is not set: run "npm run test:scaling".');
/**
 * The ScaledObject as rendered, except for its minimum, because the loads are chosen for one writer, and for its maximum, which follows from the
 * connections of this test's database.
 */
const { object, maxConnections } = JSON.parse(SCALING) as { object: ScaledObject; maxConnections: number };

/** Commands a second: less and more than one writer of this test can do, which is about 350. */
const LITTLE = 60;
const MUCH = 700;
const MUCH_FOR_MS = 45_000;
/** How long the load stays little before the burst, and after the last writer that was not needed has gone. */
const QUIET_MS = 40_000;
const LIMIT_MS = 480_000;

interface Look {
  second: number;
  rate: number;
  backlog: number;
  age: number;
  asked: number;
  writers: number;
  connections: number;
}

describe('notification writers', () => {
  let system: ScalingSystem;
  let load: Load;
  const looks: Look[] = [];
  const began = performance.now();
  const second = () => (performance.now() - began) / 1000;
  let rate = 0;
  let timer: NodeJS.Timeout;
  let failure: Error | undefined;
  /** Until a condition holds, unless a look has failed. */
  const until = async (condition: () => unknown, limitMs: number) => {
    await eventually(async () => failure !== undefined || (await condition()), limitMs, 500);
    if (failure) throw failure;
  };

  const change = (to: number) => {
    rate = to;
    load.change(to);
  };

  beforeAll(async () => {
    system = await ScalingSystem.start(maxConnections);
    await system.scaleTo(object.minReplicaCount);
    await system.settled();
    load = await Load.start(system.broker.url);
    const autoscaler = new Autoscaler(object);
    const look = async () => {
      const [backlog, age] = await Promise.all(object.triggers.map((trigger) => valueOf(trigger, system.sources)));
      const { asked, replicas } = autoscaler.decide([backlog, age], system.replicas, second());
      const found = { second: second(), rate, backlog, age, asked, writers: replicas, connections: await system.connections() };
      looks.push(found);
      report(columns(found));
      await system.scaleTo(replicas);
    };
    timer = setInterval(() => {
      look().catch((error: unknown) => {
        clearInterval(timer);
        failure = new Error('A look has failed.', { cause: error });
      });
    }, object.pollingInterval * 1000);
  }, LIMIT_MS);

  afterAll(async () => {
    clearInterval(timer);
    await load?.stop();
    await system?.remove();
  }, LIMIT_MS);

  it(
    'become as many as the load needs, and one again, without a lost command',
    async () => {
      const passed = (ms: number, since = performance.now()) => until(() => performance.now() - since > ms, ms + 5000);
      change(LITTLE);
      await passed(QUIET_MS);
      const before = looks.length;

      const burst = second();
      change(MUCH);
      await passed(MUCH_FOR_MS);
      change(LITTLE);
      const over = second();
      await until(async () => (await load.waiting()) === 0, 240_000);
      const gone = second();
      await until(() => system.replicas === object.minReplicaCount, 240_000);
      await passed(QUIET_MS);
      clearInterval(timer);
      await load.stop();
      await until(async () => (await system.stored()) >= load.published, 60_000);
      await system.settled();

      const stored = await system.stored();
      const connections = Math.max(...looks.map((look) => look.connections));
      report({
        second: second().toFixed(),
        result: `${load.published} published, ${stored} stored; the backlog was gone ${(gone - burst).toFixed()} s after the begin of the burst, ${(gone - over).toFixed()} s after its end; at most ${connections} of ${maxConnections} connections`,
      });
      const writers = looks.map((look) => look.writers);
      const peak = writers.indexOf(Math.max(...writers));
      expect({
        asked: [
          Math.max(...looks.slice(0, before).map(({ asked }) => asked)),
          Math.max(...looks.map(({ asked }) => asked)),
          looks.at(-1)?.asked,
        ],
        lost: load.published - stored,
        // Up once and down once.
        up: writers.slice(0, peak + 1),
        down: writers.slice(peak),
        exitCodes: new Set(system.exitCodes),
        letters: await letters(system),
      }).toEqual({
        asked: [1, 4, 1],
        lost: 0,
        up: writers.slice(0, peak + 1).toSorted((one, other) => one - other),
        down: writers.slice(peak).toSorted((one, other) => other - one),
        exitCodes: new Set([0]),
        letters: 0,
      });
      expect(connections).toBeLessThan(maxConnections);
    },
    LIMIT_MS,
  );
});

/** Commands that were given up. */
async function letters({ broker }: ScalingSystem): Promise<number> {
  const queues = await broker.management.get<{ name: string; messages?: number }[]>('queues/%2F');
  const names = SERVICES.flatMap((service) => letterQueues(service));
  return queues.filter(({ name }) => names.includes(name)).reduce((sum, { messages = 0 }) => sum + messages, 0);
}

const columns = ({ second, rate, backlog, age, asked, writers, connections }: Look) => ({
  second: second.toFixed(),
  'commands a second': rate,
  backlog,
  'age (s)': age.toFixed(1),
  'asked for': asked,
  writers,
  connections,
});
