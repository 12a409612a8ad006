import { eventually } from '@app/testing/eventually';
import { waitingIn } from '../faults/harness/cluster';
import { lasting } from '../faults/harness/run-fault';
import { supervise } from '../faults/harness/supervise';
import { verify } from '../faults/harness/verify';
import { Child } from './child';
import { ADDS_PER_SECOND, GETS_PER_SECOND, GoodTenant, type Measured } from './good-tenant';
import type { NeighbourSystem } from './neighbour-system';
import { replayLetters } from './replay-letters';
import { Watch, type Taken } from './watch';

/** The criteria. */
const RECOVERY_MS = 10_000;
const MOST_RSS = 512;
const LEAST_BOUND_MS = 150;
const QUIET_FACTOR = 3;
/** Promise 13, and less than an event waits that is not published at once: for tests beside which the machine may be busy. */
export const MOST_REMOVAL_MS = { promised: 1000, busy: 4500 };

/** Time during which a recovered system must work. */
const HEALTHY_MS = 2000;
/** Least share of answered calls, because the last ones may still be in flight. */
const SHARE_ANSWERED = 0.8;
/** Longer than allowed, so that the figure is known. */
const GIVE_UP_MS = 20_000;
const WARM_UP_ANSWERS = 100;
/** Time for the backlog of an attacker to drain before the next row. Otherwise the system is restarted. */
const DRAIN_MS = 20_000;

const READ_BACK_MS = 60_000;

export interface Row {
  name: string;
  /** Names of attacks in `attacks/all.mjs` that run at the same time. */
  attacks: readonly string[];
  seconds: number;
  /** Whether one of the writers is killed in the middle. */
  kill: boolean;
}

export interface Outcome {
  offered: string;
  measured: Measured;
  taken: Taken;
  recoveryMs: number;
  events: { p99: number; missing: number };
  /** Criteria that did not hold. */
  violations: string[];
}

/** 99th percentiles of adds and gets of the good tenant alone; the limits derive from them. And the longest time until a removal is seen. */
export interface Quiet {
  add: number;
  get: number;
  removal: number;
}

export const boundOf = (quietMs: number) => Math.max(LEAST_BOUND_MS, QUIET_FACTOR * quietMs);

/** A slower result without attack means that the machine is busy: it is measured again, and the best result counts. */
const QUIET_ENOUGH_MS = 50;
const QUIET_TRIES = 3;

/** Measures the good tenant alone. @param timed whether the result must be that of a quiet machine */
export async function measureQuiet(system: NeighbourSystem, seconds: number, timed: boolean): Promise<Measured> {
  const good = await GoodTenant.start(system, 'nobody');
  await eventually(() => good.answers.length >= 2 * WARM_UP_ANSWERS, 30_000);
  let best: Measured | undefined;
  const most = timed ? QUIET_TRIES : 1;
  for (let tries = 0; tries < most && !(best && best.addP99 <= QUIET_ENOUGH_MS); tries++) {
    const from = Date.now();
    await lasting(seconds * 1000);
    const measured = good.measured(from);
    if (!best || measured.addP99 < best.addP99) best = measured;
  }
  await good.stop();
  return best as Measured;
}

/** Runs the attacks of a row next to the good tenant, and reads all data back. */
export async function runRow(system: NeighbourSystem, row: Row, quiet: Quiet): Promise<Outcome> {
  const good = await GoodTenant.start(system, row.name);
  const watch = await Watch.start(system);
  let deaths = 0;
  const stopSupervision = supervise(system.writers, () => deaths++);
  const attackers: Child[] = [];
  try {
    await eventually(() => good.answers.length >= WARM_UP_ANSWERS, 30_000);
    for (const name of row.attacks)
      attackers.push(await Child.start('attacker.mjs', { name, target: system.target }, () => undefined));
    const from = Date.now();
    await Promise.all(attackers.map((attacker) => attacker.order('attack')));
    await lasting((row.seconds * 1000) / 2);
    if (row.kill) system.writers[1].kill('SIGKILL');
    await lasting((row.seconds * 1000) / 2);
    const reports = await Promise.all(attackers.map((attacker) => attacker.stop()));
    const offered = reports.flatMap(({ done }) => done).map(String);
    const until = Date.now();
    const recoveryMs = await recovery(system, good, quiet, until);
    const events = await eventsAfter(good, from, until);
    await good.stop();
    const unready = await stopSupervision().then(
      () => [],
      () => unreadyOf(system),
    );
    const replayed = row.attacks.includes('forged headers')
      ? await replayAll(system).catch((error: unknown) => [String(error)])
      : [];
    const outcome: Outcome = {
      offered: offered.join('; '),
      measured: good.measured(from, until),
      taken: watch.stop(),
      recoveryMs,
      events,
      violations: [],
    };
    outcome.violations = [
      ...judge(outcome, quiet),
      // An attack that did nothing proves nothing. Each report has the amount of what was done or refused.
      ...offered.filter((part) => !/[1-9]/.test(part)).map((part) => `an attack did nothing: ${part}`),
      ...unready,
      ...replayed,
      ...(await crossed(system, good).catch((error: unknown) => [String(error)])),
      // Poison ends the writers, and one may be on its way back.
      ...(row.attacks.includes('poisonous messages')
        ? deaths > Number(row.kill)
          ? []
          : ['poison has ended no writer']
        : [...exits(system), ...(deaths <= Number(row.kill) ? [] : [`${deaths} writers ended`])]),
    ];
    return outcome;
  } finally {
    watch.stop();
    await Promise.all(attackers.map((attacker) => attacker.kill()));
    await good.kill();
    await stopSupervision().catch(() => undefined);
  }
}

/** Cleans up after a row. @param clean false: also restarts the processes */
export async function tidyUp(system: NeighbourSystem, clean: boolean, writerEnv?: Record<string, string>): Promise<void> {
  await system.forget();
  const isEmpty = async () => (await backlog(system)) === 0;
  const drained = clean && !writerEnv && (await eventually(isEmpty, DRAIN_MS, 500).catch(() => false));
  if (!drained) await system.renew(writerEnv);
}

function judge({ measured, taken, recoveryMs, events }: Outcome, quiet: Quiet): string[] {
  const { statuses, errors, asked, addP99, getP99, removals } = measured;
  const others = Object.entries(statuses).filter(([status]) => status !== '200');
  return [
    ...others.map(([status, count]) => `${count} of ${asked} answered ${status}: ${errors[status]?.slice(0, 3).join(' ')}`),
    addP99 > boundOf(quiet.add) && `adds: p99 ${addP99.toFixed()} ms`,
    getP99 > boundOf(quiet.get) && `gets: p99 ${getP99.toFixed()} ms`,
    taken.rss > MOST_RSS && `${taken.of}: ${taken.rss.toFixed()} MiB`,
    ...taken.alarms.map((alarm) => `${alarm} alarm`),
    recoveryMs > RECOVERY_MS &&
      `recovered after ${recoveryMs === Infinity ? `more than ${GIVE_UP_MS / 1000}` : (recoveryMs / 1000).toFixed(1)} s`,
    ...Object.entries(removals.statuses)
      .filter(([status]) => status !== '200')
      .map(([status, count]) => `${count} removals answered ${status}`),
    Object.keys(removals.statuses).length === 0 && 'no user was removed',
    removals.missed > 0 && `${removals.missed} added users not found`,
    removals.longest > quiet.removal && `a removal seen after ${removals.longest.toFixed()} ms`,
    events.missing > 0 && `${events.missing} events missing ${RECOVERY_MS / 1000} s after the end`,
  ].filter((violation) => violation !== false);
}

/** @returns milliseconds from the end of the attack until the system works normally again */
async function recovery(system: NeighbourSystem, good: GoodTenant, quiet: Quiet, end: number): Promise<number> {
  const healthyFrom = async () => {
    const now = Date.now();
    const from = now - HEALTHY_MS;
    if (from < end) return undefined;
    const { asked, statuses, addP99, getP99 } = good.measured(from, now);
    const isEnough = asked >= (SHARE_ANSWERED * (ADDS_PER_SECOND + GETS_PER_SECOND) * HEALTHY_MS) / 1000;
    const isRight = statuses[200] === asked && addP99 <= boundOf(quiet.add) && getP99 <= boundOf(quiet.get);
    return isEnough && isRight && (await isReady(system)) ? { from } : undefined;
  };
  const healthy = await eventually(healthyFrom, GIVE_UP_MS, 100).catch(() => undefined);
  return healthy ? healthy.from - end : Infinity;
}

async function isReady(system: NeighbourSystem): Promise<boolean> {
  const reports = system.services.map(([, process]) => process.health('ready').catch(() => ({ status: 0 })));
  return (await Promise.all(reports)).every(({ status }) => status === 200);
}

/** @returns what the processes say that are not ready */
async function unreadyOf(system: NeighbourSystem): Promise<string[]> {
  const reports = system.services.map(async ([name, process]) => {
    const { status, body } = await process.health('ready').catch((error: unknown) => ({ status: 0, body: String(error) }));
    return status === 200 ? [] : `${name} is not ready: ${JSON.stringify(body)}`;
  });
  return (await Promise.all(reports)).flat();
}

/** Waits for the events of all adds in a period, up to the allowed time. */
async function eventsAfter(good: GoodTenant, from: number, until: number) {
  const left = Math.max(0, until + RECOVERY_MS - Date.now());
  await eventually(() => good.eventsOf(from, until).missing === 0, left, 100).catch(() => undefined);
  return good.eventsOf(from, until);
}

/** Replays all dead letters, and waits until they are handled. */
async function replayAll(system: NeighbourSystem): Promise<string[]> {
  await replayLetters(system);
  await eventually(async () => (await backlog(system)) === 0, DRAIN_MS, 200);
  return [];
}

/** Number of unacknowledged commands in all queues. */
async function backlog(system: NeighbourSystem): Promise<number> {
  const queues = await waitingIn(system.broker.url, /^(?!.*(\.dead|\.refused|\.retry\.))/);
  return queues.reduce((sum, { count }) => sum + count, 0);
}

/** Checks that all data of the good tenant is stored once and unchanged, and that other tenants have no foreign data. */
async function crossed(system: NeighbourSystem, good: GoodTenant): Promise<string[]> {
  // A missing recovery is reported already: retry until the data can be read.
  const { lost, duplicated, unasked, malformed } = await eventually(() => verify(system, good), READ_BACK_MS, 1000);
  const { rows } = await system.sql.query<{ tenant: string; organization: string }>(
    `SELECT api_key AS tenant, organization_id AS organization FROM notifications.organizations
     WHERE api_key = ANY ($1) AND organization_id NOT LIKE 'good tenant beside %'
     UNION ALL
     SELECT api_key, organization_id FROM users.organizations
     WHERE api_key = ANY ($1) AND organization_id NOT LIKE 'good tenant beside %'`,
    [system.target.victims],
  );
  const foreign = rows
    .map(({ tenant, organization }) => `foreign data at ${tenant}: ${organization}`)
    .filter((finding) => !system.found.has(finding));
  foreign.forEach((finding) => system.found.add(finding));
  const strange = good.strangePages > 0 ? [`${good.strangePages} pages with foreign notifications`] : [];
  return [...lost, ...duplicated, ...unasked, ...malformed, ...foreign, ...strange].slice(0, 5);
}

function exits(system: NeighbourSystem): string[] {
  return system.services.flatMap(([name, { exitCode }]) => (exitCode === undefined ? [] : [`${name} ended with ${exitCode}`]));
}
