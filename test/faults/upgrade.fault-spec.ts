import { appendFileSync } from 'node:fs';
import { eventually } from '@app/testing/eventually';
import { keepCalling } from '@app/testing/keep-calling';
import { Cluster, type Node } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';
import { verify } from './harness/verify';
import { Workload } from './harness/workload';

const THIS = process.cwd();
/** Without another version the same code is on both sides, which tests the procedure. */
const OTHER = process.env.UPGRADE_FROM_ROOT ?? THIS;
/** Answers of 200 after each step, so that each version serves with each. */
const ANSWERS = 100;
const READS_PER_SECOND = 20;

/** The order of docs/operations.md: services that answer before services that ask. Started by scripts/test-upgrade.mjs. */
describe('an upgrade under load', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { gateways: 2, users: 2, writers: 2, root: OTHER });
  }, 180_000);
  afterAll(() => cluster?.remove(), 60_000);

  it('and the way back fail no call, lose nothing and store nothing twice', async () => {
    const workload = new Workload(cluster, random, 'upgrade');
    const refusedReads: unknown[] = [];
    workload.start();
    const stopReading = keepCalling(2, READS_PER_SECOND, async () => {
      const { status, text } = await read(cluster, workload);
      if (status !== 200) refusedReads.push([status, text]);
    });
    const step = async (name: string, work: () => Promise<void>) => {
      const from = performance.now();
      const reads = refusedReads.length;
      await work();
      await workload.answers(ANSWERS);
      const answered = workload.since(from);
      report({
        step: name,
        seconds: ((performance.now() - from) / 1000).toFixed(1),
        calls: answered.length,
        failed: answered.filter(({ status }) => status !== 200).length + refusedReads.length - reads,
        ...longestPause(answered),
      });
    };
    const replaceAll = async (services: [string, Node[]][], root: string, version: string) => {
      for (const [service, nodes] of services)
        for (const [index, { process }] of nodes.entries())
          await step(`${service} ${index + 1} of ${nodes.length}: ${version}`, async () => {
            expect(await process.stop('SIGTERM')).toBe(0);
            process.root = root;
            await process.start();
          });
    };
    const order: [string, Node[]][] = [
      ['users', cluster.usersReplicas],
      ['notifications', cluster.writers],
      ['gateway', cluster.gateways],
    ];

    await step('the other version alone', async () => undefined);
    await step('set-up of this version', () => cluster.setUp(THIS));
    await replaceAll(order, THIS, 'this version');
    await replaceAll(order.toReversed(), OTHER, 'the other version');
    await stopReading();
    await workload.stop();
    await eventually(async () => (await cluster.waiting('commands')) === 0, 30_000);
    const { statuses, lost, duplicated, unasked, late, malformed } = await verify(cluster, workload);
    report({ step: `lost ${lost.length}, twice ${duplicated.length}`, calls: workload.statuses.length });
    const errors = cluster.nodes.flatMap(({ process }) => process.output.filter((line) => /"level":[56]0/.test(line)));
    expect({ seed, statuses: Object.keys(statuses), refusedReads, lost, duplicated, unasked, late, malformed, errors }).toEqual({
      seed,
      statuses: ['200'],
      refusedReads: [],
      lost: [],
      duplicated: [],
      unasked: [],
      late: [],
      malformed: [],
      errors: [],
    });
    expect(await cluster.waiting('dead')).toBe(0);
    workload.journal.remove();
  }, 900_000);
});

async function read(cluster: Cluster, { organizationId, documentId }: Workload): Promise<{ status: number; text: string }> {
  const response = await fetch(`${cluster.gatewayUrl}/v1/notifications/get`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...cluster.tenants[0] },
    body: JSON.stringify({ data: { organizationId, documentId, pageSize: 10 } }),
  });
  return { status: response.status, text: await response.text() };
}

/** Longest time between two answers of 200. */
function longestPause(answered: Workload['statuses']): Record<string, string> {
  const times = answered.flatMap(({ askedAt, status, ms = 0 }) => (status === 200 ? [askedAt + ms] : [])).sort((a, b) => a - b);
  const pauses = times.slice(1).map((time, index) => time - times[index]);
  return { 'longest pause (ms)': Math.max(0, ...pauses).toFixed() };
}

function report(row: Record<string, unknown>): void {
  const file = process.env.UPGRADE_REPORT;
  if (file) appendFileSync(file, `${JSON.stringify(row)}\n`);
}
