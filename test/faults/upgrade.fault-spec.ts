import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { keepCalling } from '@app/testing/system/keep-calling';
import { Cluster, type Node } from './harness/cluster';
import { Noise } from './harness/noise';
import { Random, seedOfRun } from './harness/random';
import { QUIET_MS, verify } from './harness/verify';
import { Workload } from './harness/workload';

const THIS = process.cwd();
/** Without another version the same code is on both sides, which tests the procedure. */
const OTHER = process.env.UPGRADE_FROM_ROOT ?? THIS;
/** Answers of 200 after each step, so that each version serves with each. */
const ANSWERS = 100;
const READS_PER_SECOND = 20;
const PER_SECOND = 50;
/** Requests at a time that share a message. */
const BURST = 25;
/** A version before these operations refuses them. */
const HAS_CHANGES = existsSync(join(OTHER, 'libs/contracts/src/notifications.delete.ts'));
/** A version without lanes consumes no calls from exchange `calls`. */
const HAS_LANES = readFileSync(join(OTHER, '.env.example'), 'utf8').includes('CALLS_EXCHANGE');

type Service = 'users' | 'notifications' | 'gateway';

/** Started by scripts/test-upgrade.mjs. */
describe('an upgrade under load', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { gateways: 2, users: 2, writers: 2, root: OTHER });
  }, 180_000);
  afterAll(() => cluster?.remove(), 60_000);

  it.each<[string, Service[], number]>([
    [
      'in the order of docs/operations.md: services that answer before services that ask',
      ['users', 'notifications', 'gateway'],
      1,
    ],
    ['in the other order, with bursts', ['gateway', 'notifications', 'users'], BURST],
  ])(
    '%s, and the way back fail no call, lose nothing and store nothing twice',
    async (name, order, burst) => {
      const workload = new Workload(cluster, random, name, PER_SECOND, burst, HAS_CHANGES);
      const noise = new Noise(cluster);
      const failedReads: { text: string; noiseMs: number }[] = [];
      workload.start();
      const stopReading = keepCalling(2, READS_PER_SECOND, async () => {
        const from = performance.now();
        const { status, text } = await read(cluster, workload);
        if (status !== 200) failedReads.push({ text: `${status} ${text}`, noiseMs: noise.since(from) });
      });
      const step = async (name: string, work: () => Promise<void>) => {
        const from = performance.now();
        const reads = failedReads.length;
        await work();
        await workload.answers(ANSWERS);
        const answered = workload.since(from);
        report({
          step: name,
          seconds: ((performance.now() - from) / 1000).toFixed(1),
          calls: answered.length,
          failed: answered.filter(({ status }) => status !== 200).length + failedReads.length - reads,
          'longest pause (ms)': longestPause(answered).toFixed(),
          'machine late (ms)': noise.since(from).toFixed(),
        });
      };
      const nodesOf: Record<Service, Node[]> = {
        users: cluster.usersReplicas,
        notifications: cluster.writers,
        gateway: cluster.gateways,
      };
      // docs/operations.md asks for this while a service of such a version has to answer processes of this one.
      if (!HAS_LANES && order[0] === 'gateway')
        for (const { process } of [...cluster.gateways, ...cluster.writers]) process.env.CALLS_EXCHANGE = 'commands';
      const replaceAll = async (services: Service[], root: string, version: string) => {
        for (const service of services)
          for (const [index, { process }] of nodesOf[service].entries())
            await step(`${service} ${index + 1} of ${nodesOf[service].length}: ${version}`, async () => {
              expect(await process.stop('SIGTERM')).toBe(0);
              process.root = root;
              await process.start();
            });
      };
      await step('the other version alone', async () => undefined);
      await step('set-up of this version', () => cluster.setUp(THIS));
      await replaceAll(order, THIS, 'this version');
      await replaceAll(order.toReversed(), OTHER, 'the other version');
      await stopReading();
      await workload.stop();
      noise.stop();
      await eventually(async () => (await cluster.waiting('commands')) === 0, 30_000);
      const { statuses, share, lost, duplicated, unasked, late, malformed } = await verify(cluster, workload);
      report({ step: `lost ${lost.length}, twice ${duplicated.length}`, calls: workload.statuses.length });
      const errors = cluster.nodes.flatMap(({ process }) => process.output.filter((line) => /"level":[56]0/.test(line)));
      // Like in all fault tests: calls that the machine itself delayed do not count.
      const readsOfQuietMachine = failedReads.filter(({ noiseMs }) => noiseMs < QUIET_MS);
      const reasons = share < 1 || readsOfQuietMachine.length > 0 ? { statuses, reasons: reasonsOf(cluster) } : undefined;
      expect({ seed, share, readsOfQuietMachine, reasons, lost, duplicated, unasked, late, malformed, errors }).toEqual({
        seed,
        share: 1,
        readsOfQuietMachine: [],
        reasons: undefined,
        lost: [],
        duplicated: [],
        unasked: [],
        late: [],
        malformed: [],
        errors: [],
      });
      expect(await cluster.waiting('dead')).toBe(0);
      workload.journal.remove();
    },
    900_000,
  );
});

async function read(cluster: Cluster, { organizationId, documentId }: Workload): Promise<{ status: number; text: string }> {
  const response = await fetch(`${cluster.gatewayUrl}/v1/notifications/get`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...cluster.tenants[0] },
    body: JSON.stringify({ data: { organizationId, documentId, pageSize: 10 } }),
  });
  return { status: response.status, text: await response.text() };
}

/** Reasons of failed calls in the logs of the gateways, with their number. */
function reasonsOf(cluster: Cluster): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const line of cluster.gateways.flatMap(({ process }) => process.output).filter((text) => /"status":50\d/.test(text))) {
    const { status, route, reason } = JSON.parse(line) as Record<string, unknown>;
    const key = [status, route, reason].join(' ');
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

/** Longest time between two answers of 200, in milliseconds. */
function longestPause(answered: Workload['statuses']): number {
  const times = answered.flatMap(({ askedAt, status, ms = 0 }) => (status === 200 ? [askedAt + ms] : [])).sort((a, b) => a - b);
  const pauses = times.slice(1).map((time, index) => time - times[index]);
  return Math.max(0, ...pauses);
}
