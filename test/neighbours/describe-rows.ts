import { join } from 'node:path';
import { report } from '@app/testing/report';
import type { Measured } from './good-tenant';
import { NeighbourSystem } from './neighbour-system';
import { boundOf, measureQuiet, MOST_REMOVAL_MS, runRow, tidyUp, type Outcome, type Quiet, type Row } from './row';

const QUIET_SECONDS = 10;
const LONGEST_ROW_MS = 240_000;
const FAILING = 'failing messages beside a full queue of dead letters';
/** Bugs that an attacker has found: what the writers load first, by attack. */
const BUGS: Readonly<Record<string, string>> = {
  'poisonous messages': 'test/faults/harness/poison.cjs',
  [FAILING]: 'test/neighbours/failing.cjs',
};
/** A command is tried eight times, usually within twenty minutes or more. */
const SHORT_RETRY_MS = 100;

export interface DescribeOptions {
  /** Seconds during which the good tenant is measured alone, for the limits. Default 10. */
  quietSeconds?: number;
  /** Whether answer times are checked too. Default true. */
  timed?: boolean;
}

/** Starts one system, and runs each row as a test on it. */
export function describeRows(
  title: string,
  rows: readonly Row[],
  { quietSeconds = QUIET_SECONDS, timed = true }: DescribeOptions = {},
): void {
  describe(title, () => {
    let system: NeighbourSystem;
    let quiet: Quiet;
    /** Whether the system is in its initial state. */
    let clean = true;

    beforeAll(async () => {
      system = await NeighbourSystem.start();
      const measured = await measureQuiet(system, quietSeconds, timed);
      quiet = timed
        ? { add: measured.addP99, get: measured.getP99, removal: MOST_REMOVAL_MS.promised }
        : { add: Infinity, get: Infinity, removal: MOST_REMOVAL_MS.busy };
      report({ attack: 'nobody', ...figuresOf(measured) });
      expect(measured.statuses).toEqual({ 200: measured.asked });
    }, 180_000);
    afterAll(() => system?.remove(), 60_000);

    it.each(rows.map((row) => [row.name, row] as const))(
      '%s',
      async (_name, row) => {
        const bugs = row.attacks.flatMap((attack) => BUGS[attack] ?? []);
        const options = bugs.map((file) => `--require "${join(process.cwd(), file)}"`);
        if (bugs.length > 0) await tidyUp(system, false, { NODE_OPTIONS: options.join(' ') });
        if (row.attacks.includes(FAILING)) await system.shortenRetries(SHORT_RETRY_MS);
        const outcome = await runRow(system, row, quiet).catch(async (error: unknown) => {
          await tidyUp(system, false);
          throw error;
        });
        clean = outcome.violations.length === 0 && bugs.length === 0;
        report({ attack: row.name, ...reportOf(outcome) });
        await tidyUp(system, clean);
        expect({ bounds: { add: boundOf(quiet.add), get: boundOf(quiet.get) }, violations: outcome.violations }).toEqual({
          bounds: expect.anything(),
          violations: [],
        });
      },
      LONGEST_ROW_MS,
    );
  });
}

/** Columns of the table. */
function reportOf({ offered, measured, taken, recoveryMs, events, violations }: Outcome): Record<string, unknown> {
  return {
    offered,
    ...figuresOf(measured),
    'events p99 (ms)': events.p99.toFixed(),
    'removals: median, longest (ms)': `${measured.removals.median.toFixed()}, ${measured.removals.longest.toFixed()}`,
    'most memory (MiB)': `${taken.rss.toFixed()} ${taken.of}`,
    'broker: memory, disk (MiB)': `${taken.brokerMemory.toFixed()}, ${taken.brokerDisk.toFixed()}`,
    'recovery (s)': recoveryMs === Infinity ? 'none' : (recoveryMs / 1000).toFixed(1),
    failed: violations.join('; '),
  };
}

function figuresOf({ asked, statuses, addP99, getP99, rawP99, machineP99, lateP99 }: Measured): Record<string, unknown> {
  return {
    asked,
    'not 200': asked - (statuses[200] ?? 0),
    'add p99 (ms)': addP99.toFixed(),
    'get p99 (ms)': getP99.toFixed(),
    'as measured (ms)': rawP99.toFixed(),
    'machine (ms)': machineP99.toFixed(),
    'client late (ms)': lateP99.toFixed(),
  };
}
