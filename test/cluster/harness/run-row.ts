import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { Random, seedOfRun } from '../../faults/harness/random';
import { verify, type Verdict } from '../../faults/harness/verify';
import { Workload, type Answered } from '../../faults/harness/workload';
import { FAULTS, type Happened } from './cluster-faults';
import type { ClusterSystem } from './cluster-system';
import { missedBounds, pause, recovery, seconds, type Row } from './bounds';
import { Reads } from './reads';

const ADDS_PER_SECOND = 100;
const GETS_PER_SECOND = 20;
/** Answers of 200 before the fault, and in a row after it. */
const HEALTHY = { adds: 100, gets: 20 };
const HEALTHY_WITHIN_MS = 60_000;
/** Time for a read-back while the system still recovers. */
const READ_BACK_MS = 60_000;

/** Runs a fault under load, and reads everything back. @returns the promises and the bounds that did not hold */
export async function runRow(system: ClusterSystem, row: Row): Promise<{ violations: string[]; missed: string[] }> {
  const random = Random.for(seedOfRun(), row.name);
  const workload = new Workload(system, random, row.name, ADDS_PER_SECOND);
  const reads = new Reads(system, workload, GETS_PER_SECOND);
  const violations: string[] = [];
  let happened: Happened = {};
  workload.start();
  reads.start();
  const clients = [workload.statuses, reads.statuses] as const;
  let from = performance.now();
  try {
    await healthy(clients, from);
    from = performance.now();
    happened = (await FAULTS[row.fault]({ system, workload })) ?? {};
    await healthy(clients, performance.now());
    await Promise.all(system.nodes.map(({ process }) => process.untilReady()));
  } catch (error) {
    violations.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  const until = performance.now();
  await reads.stop();
  await workload.stop();
  await eventually(async () => (await system.waiting('commands')) === 0, 30_000).catch(() =>
    violations.push('the queues are not drained'),
  );
  const verdict = await eventually(() => verify(system, workload), READ_BACK_MS, 1000).catch((error: unknown) => {
    violations.push(String(error));
    return undefined;
  });
  if (verdict) violations.push(...broken(verdict, row));
  for (const { process } of system.nodes)
    if (process.exitCode !== undefined) violations.push(`${process.app} exited with ${process.exitCode}`);

  const [adds, gets] = clients.map((answers) => answers.filter(({ askedAt }) => askedAt >= from));
  const measured = { adds, gets, from, until, happened };
  const missed = missedBounds(row, measured);
  report({
    row: row.name,
    ...countsOf('adds', adds),
    ...countsOf('gets', gets),
    'pause of adds (s)': seconds(pause(adds, from, until)),
    'pause of gets (s)': seconds(pause(gets, from, until)),
    'recovery (s)': happened.repairedAt === undefined ? undefined : seconds(recovery(measured)),
    lost: verdict?.lost.length,
    duplicated: verdict?.duplicated.length,
    unasked: verdict?.unasked.length,
    late: verdict?.late.length,
    figures: happened.figures,
    missed: [...missed, ...violations.map((violation) => violation.split(/[\n;]/)[0])].join('; '),
  });
  if (violations.length === 0) workload.journal.remove();
  else violations.push(`the journal, and the logs beside it: ${saveLogs(system, workload)}`);
  return { violations, missed };
}

/** @returns the path of the journal */
function saveLogs(system: ClusterSystem, { journal: { path } }: Workload): string {
  system.nodes.forEach(({ process }, number) =>
    writeFileSync(join(dirname(path), `${number} ${process.app}.log`), process.output.join('\n')),
  );
  for (const { name, server } of system.brokers.brokers) {
    const logs = join(server.directory, 'log');
    if (existsSync(logs)) cpSync(logs, join(dirname(path), name), { recursive: true });
  }
  return path;
}

/** Waits until each client has had only answers 200 to its latest requests after a time. */
async function healthy([adds, gets]: readonly [Answered[], Answered[]], after: number): Promise<void> {
  const streak = (answers: Answered[]) => {
    const known = answers.filter(({ askedAt, status }) => askedAt >= after && status !== undefined);
    return known.length - 1 - known.findLastIndex(({ status }) => status !== 200);
  };
  await eventually(() => streak(adds) >= HEALTHY.adds && streak(gets) >= HEALTHY.gets, HEALTHY_WITHIN_MS, 50);
}

function broken({ lost, duplicated, unasked, late, malformed }: Verdict, { openOutcomes }: Row): string[] {
  const kinds = { lost, duplicated, unasked, malformed, ...(!openOutcomes && { late }) };
  return Object.entries(kinds).flatMap(([kind, list]) =>
    list.length > 0 ? [`${list.length} ${kind}: ${list.slice(0, 5).join('; ')}`] : [],
  );
}

function countsOf(kind: string, answers: readonly Answered[]): Record<string, string | number> {
  const statuses: Record<string, number> = {};
  for (const { status } of answers) statuses[status || 'no answer'] = (statuses[status || 'no answer'] ?? 0) + 1;
  const { 200: ok = 0, ...others } = statuses;
  const refused = Object.entries(others).map(([status, count]) => `${count} × ${status}`);
  return { [`${kind} 200`]: ok, [`other ${kind}`]: refused.join(', ') || 0 };
}
