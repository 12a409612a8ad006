import { availableParallelism, cpus } from 'node:os';
import { eventually } from '@app/testing/eventually';
import { ComposeProject } from './harness/compose-project';
import { NEXT_IMAGE, docker, evaluate, inspect, note, processOf, stop, urlOf } from './harness/docker';
import { tryReadmeCalls } from './harness/readme-calls';
import { Traffic } from './harness/traffic';

const SERVICES = ['users', 'notifications', 'gateway'] as const;
/** Within which `docker compose up --wait` is done on a machine without other work, and how often it may try. */
const UP_MS = 15_000;
const TRIES = 3;
/** Share of the processors that other work may take beside it, and how long the test waits for such a moment. */
const QUIET_SHARE = 0.25;
const QUIET_WITHIN_MS = 20_000;
/** As in the compose file. */
const GRACE_SECONDS = 30;
const LIMIT_MS = 400_000;

/** The tests go on with the system of those before, in this order: a start takes a quarter of a minute. */
describe('the compose file', () => {
  // Longer than the balancer of the test needs to notice.
  const project = new ComposeProject('compose', { SHUTDOWN_DELAY_MS: '1500' });
  let traffic: Traffic;
  let gateways: { api: string; health: string }[] = [];
  /** A container that starts again gets other ports. */
  const findGateways = () =>
    eventually(async () => {
      const ids = await project.containers('gateway');
      gateways = await Promise.all(ids.map(async (id) => ({ api: await urlOf(id, 3000), health: await urlOf(id, 9090) })));
      return true;
    });
  const startTraffic = async () => {
    await findGateways();
    traffic = new Traffic(() => gateways);
    await traffic.start();
    await traffic.more();
  };
  /** The outcome of the calls, and of the stored rows. */
  const outcome = async () => ({ failures: traffic.failures, ...(await traffic.missing()) });
  const NOTHING_FAILED = { failures: [], lost: [], twice: [] };
  const image = async (id: string) => (await inspect(id)).Image;

  afterAll(() => project.remove(), LIMIT_MS);
  afterEach(() => traffic?.stop());

  it(
    `is up and healthy within ${UP_MS / 1000} s when the images are there`,
    async () => {
      const tries: { ms: number; share: number }[] = [];
      const isDone = () => tries.some(({ ms }) => ms < UP_MS);
      while (tries.length < TRIES && !isDone()) {
        await project.remove();
        const before = await shareOfOthers(QUIET_WITHIN_MS);
        const since = performance.now();
        await project.run(['up', '--wait']);
        const ms = performance.now() - since;
        // Other work may have begun meanwhile. The containers themselves are idle now.
        tries.push({ ms, share: Math.max(before, await shareOfOthers(0)) });
      }
      const figures = tries.map(
        ({ ms, share }) => `${(ms / 1000).toFixed(1)} s beside ${(share * 100).toFixed()} % of other work`,
      );
      note('docker compose up --wait', figures.join(', '));
      // With other work on the processors the time says nothing about this system.
      if (tries.some(({ share }) => share <= QUIET_SHARE)) expect(figures).toEqual(isDone() ? figures : `one within ${UP_MS} ms`);
    },
    LIMIT_MS,
  );

  it('answers the calls of the README', async () => {
    await findGateways();
    const answers = await tryReadmeCalls(gateways[0].api);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers.at(-1)?.body.result?.data).toMatchObject([{ actionUser: { userId: 'ada' } }]);
  });

  it.each(SERVICES)('runs %s without rights, and answers its probes', async (service) => {
    const [id] = await project.containers(service);
    expect(await processOf(id)).toMatchObject({
      Uid: '1000\t1000\t1000\t1000',
      CapPrm: '0000000000000000',
      CapEff: '0000000000000000',
      CapBnd: '0000000000000000',
      NoNewPrivs: '1',
    });
    await expect(evaluate(id, "require('fs').writeFileSync('/app/note', '')")).rejects.toThrow('EROFS');
    const health = await urlOf(id, 9090);
    const probes = ['live', 'ready'].map((probe) => fetch(`${health}/health/${probe}`));
    expect((await Promise.all(probes)).map(({ status }) => status)).toEqual([200, 200]);
  });

  it(
    'scales notifications to three and back without a failed call',
    async () => {
      await startTraffic();
      for (const replicas of [3, 1]) {
        await project.run(['up', '--wait', '--no-recreate', '--scale', `notifications=${replicas}`]);
        expect(await project.containers('notifications')).toHaveLength(replicas);
        await traffic.more();
      }
      await traffic.stop();
      note('scaling to 3 and back', `${traffic.calls} calls, ${traffic.failures.length} failed`);
      expect(await outcome()).toEqual(NOTHING_FAILED);
    },
    LIMIT_MS,
  );

  it.each(SERVICES)(
    'starts %s again when it is killed, and loses nothing',
    async (service) => {
      await startTraffic();
      const [id] = await project.containers(service);
      // Not by docker kill, after which the engine starts nothing again. Process 1 is docker-init, and the service is its child.
      const script =
        "process.kill(Number(require('fs').readFileSync('/proc/1/task/1/children', 'utf8').split(' ')[0]), 'SIGKILL')";
      const since = performance.now();
      await evaluate(id, script).catch(() => undefined);
      await eventually(async () => (await inspect(id)).RestartCount === 1);
      await findGateways();
      await eventually(() => project.isHealthy(id));
      note(`SIGKILL of ${service} until healthy again`, `${((performance.now() - since) / 1000).toFixed(1)} s`);
      const failures = traffic.failures.length;
      await traffic.more();
      await traffic.stop();
      expect({ later: traffic.failures.slice(failures), ...(await traffic.missing()) }).toEqual({
        later: [],
        lost: [],
        twice: [],
      });
    },
    LIMIT_MS,
  );

  it.each(SERVICES)(
    'stops %s under load within its grace, with exit code 0, and loses nothing',
    async (service) => {
      await startTraffic();
      const [id] = await project.containers(service);
      const { exitCode, ms } = await stop(id, GRACE_SECONDS);
      note(`stop of ${service} under load`, `${(ms / 1000).toFixed(1)} s`);
      await docker('start', id);
      await findGateways();
      await eventually(() => project.isHealthy(id));
      const failures = traffic.failures.length;
      await traffic.more();
      await traffic.stop();
      expect({ exitCode, later: traffic.failures.slice(failures), ...(await traffic.missing()) }).toEqual({
        exitCode: 0,
        later: [],
        lost: [],
        twice: [],
      });
      expect(ms).toBeLessThan(GRACE_SECONDS * 1000);
    },
    LIMIT_MS,
  );

  it(
    'is upgraded to another image under load without a failed call',
    async () => {
      const two = SERVICES.flatMap((service) => ['--scale', `${service}=2`]);
      await project.run(['up', '--wait', '--no-recreate', ...two]);
      await startTraffic();
      await project.run(['run', '--rm', '--no-deps', 'setup'], NEXT_IMAGE);
      // The order of docs/operations.md.
      for (const service of SERVICES) {
        const earlier = await project.containers(service);
        const args = ['up', '--wait', '--no-deps', '--no-recreate', '--scale', `${service}=${2 * earlier.length}`, service];
        await project.run(args, NEXT_IMAGE);
        await findGateways();
        await traffic.more();
        for (const id of earlier) {
          expect(await stop(id, GRACE_SECONDS)).toMatchObject({ exitCode: 0 });
          await project.removeContainer(id);
          await findGateways();
          await traffic.more();
        }
      }
      await traffic.stop();
      note('rolling upgrade', `${traffic.calls} calls, ${traffic.failures.length} failed`);
      const running = await Promise.all(SERVICES.map((service) => project.containers(service)));
      const next = (JSON.parse(await docker('image', 'inspect', NEXT_IMAGE)) as { Id: string }[])[0].Id;
      expect(new Set(await Promise.all(running.flat().map(image)))).toEqual(new Set([next]));
      expect(await outcome()).toEqual(NOTHING_FAILED);
    },
    LIMIT_MS,
  );

  it(
    'stops as a whole within a few seconds, with exit code 0 everywhere',
    async () => {
      const ids = (await Promise.all(SERVICES.map((service) => project.containers(service)))).flat();
      const since = performance.now();
      await project.run(['stop']);
      note('docker compose stop', `${((performance.now() - since) / 1000).toFixed(1)} s`);
      const codes = await Promise.all(ids.map(async (id) => (await inspect(id)).State.ExitCode));
      expect(new Set(codes)).toEqual(new Set([0]));
    },
    LIMIT_MS,
  );
});

/** Waits for a quiet moment, and returns the share of the processors that was busy in the last second. */
async function shareOfOthers(withinMs: number): Promise<number> {
  let share = 1;
  let before = { idle: idleMs(), at: performance.now() };
  const look = () => {
    const now = { idle: idleMs(), at: performance.now() };
    // The kernel counts in steps of 10 ms.
    if (now.at - before.at < 500) return false;
    share = Math.max(0, 1 - (now.idle - before.idle) / (now.at - before.at) / availableParallelism());
    before = now;
    return share <= QUIET_SHARE;
  };
  await eventually(look, Math.max(withinMs, 500), 1000).catch(() => undefined);
  return share;
}

const idleMs = () => cpus().reduce((sum, { times }) => sum + times.idle, 0);
