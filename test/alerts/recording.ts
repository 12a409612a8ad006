import type { AppName, ServiceProcess } from '@app/testing/system/service-process';
import { lasting } from '../faults/harness/run-fault';

/** Seconds between two samples in the tests, as in Prometheus. */
export const STEP_S = 15;
/** Minutes of each phase in the tests. In the last one each alert ends. */
export const MINUTES = { quiet: 10, fault: 10, after: 25 } as const;

export type Phase = keyof typeof MINUTES;
const PHASES = Object.keys(MINUTES) as Phase[];

/** A process whose metrics are read. */
export interface Target {
  job: AppName;
  instance: string;
  process: ServiceProcess;
}

/** One reading: values by series, with the seconds since the first. */
interface Reading {
  seconds: number;
  values: ReadonlyMap<string, number>;
}

/**
 * Reads the metrics of a system several times in each phase, and stretches the phases to minutes. A counter goes on at the rate that it had in
 * the phase. A gauge takes the values that were read, and keeps the last one.
 */
export class Recording {
  private readonly startedAt = performance.now();
  private readonly readings: Record<Phase, Reading[]> = { quiet: [], fault: [], after: [] };
  private readonly counters = new Set<string>();

  /** @param wanted names of the metrics that count */
  constructor(private readonly wanted: ReadonlySet<string>) {}

  /** @param everySeconds between two readings */
  async record(phase: Phase, targets: () => readonly Target[], readings: number, everySeconds: number): Promise<void> {
    for (let reading = 0; reading < readings; reading++) {
      if (reading > 0) await lasting(everySeconds * 1000);
      const seconds = (performance.now() - this.startedAt) / 1000;
      const read = await Promise.all(targets().map((target) => this.read(target)));
      this.readings[phase].push({ seconds, values: new Map(read.flatMap((values) => [...values])) });
    }
  }

  /** The series in the notation of `promtool test rules`. */
  series(): { series: string; values: string }[] {
    const names = new Set(PHASES.flatMap((phase) => this.readings[phase].flatMap(({ values }) => [...values.keys()])));
    const changing = new Set([...names].filter((series) => series.startsWith('queue_') && this.changes(series)).map(queueOf));
    // Most queues are quiet in every situation: only those that change are kept.
    const kept = [...names].filter((series) => !series.startsWith('queue_') || changing.has(queueOf(series)));
    return kept.sort().map((series) => ({ series, values: this.valuesOf(series) }));
  }

  private async read({ job, instance, process }: Target): Promise<Map<string, number>> {
    const own = `job="${job}",instance="${instance}"`;
    const values = new Map<string, number>();
    const text = process.exitCode === undefined ? await process.metrics().catch(() => '') : '';
    values.set(`up{${own}}`, text ? 1 : 0);
    for (const [, name = ''] of text.matchAll(/^# TYPE (\w+) counter$/gm)) this.counters.add(name);
    for (const [, name = '', labels, value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
      if (!this.wanted.has(name) || /route="(?!\/v1\/)/.test(labels ?? '')) continue;
      values.set(`${name}{${labels ? `${labels},` : ''}${own}}`, Number(value));
    }
    return values;
  }

  private changes(series: string): boolean {
    const values = PHASES.flatMap((phase) => this.readings[phase].map((reading) => reading.values.get(series)));
    return values.some((value) => value !== undefined && value !== values[0]);
  }

  private valuesOf(series: string): string {
    const name = series.slice(0, series.indexOf('{'));
    const isCounter = this.counters.has(name) || /_(bucket|count|sum)$/.test(name);
    let last: number | undefined;
    return PHASES.map((phase) => {
      const read = this.readings[phase].map(({ seconds, values }) => ({ seconds, value: values.get(series) }));
      const steps = (MINUTES[phase] * 60) / STEP_S;
      const counted = isCounter ? counterOver(read, steps, last) : undefined;
      last = counted?.last;
      return counted?.notation ?? gaugeOver(read, steps);
    }).join(' ');
  }
}

const queueOf = (series: string) => /queue="([^"]*)"/.exec(series)?.[1];

type Read = { seconds: number; value: number | undefined }[];

/** undefined when the counter began anew or was away meanwhile: then its values are taken as they are. */
function counterOver(read: Read, steps: number, before: number | undefined): { notation: string; last: number } | undefined {
  const present = read.flatMap(({ seconds, value }) => (value === undefined ? [] : { seconds, value }));
  const [first, end] = [present[0], present.at(-1)];
  if (!first || !end || read.at(-1)?.value === undefined) return undefined;
  if (present.some(({ value }, index) => index > 0 && value < (present[index - 1]?.value ?? 0))) return undefined;
  const slope = end.seconds > first.seconds ? ((end.value - first.value) / (end.seconds - first.seconds)) * STEP_S : 0;
  const from = before === undefined ? first.value : before + slope;
  const absent = read[0]?.value === undefined ? 1 : 0;
  const rounded = Number(slope.toFixed(2));
  const start = Number(from.toFixed(2));
  const notation = `${absent ? '_ ' : ''}${start}+${rounded}x${steps - 1 - absent}`;
  return { notation, last: start + rounded * (steps - 1 - absent) };
}

function gaugeOver(read: Read, steps: number): string {
  const values = read.map(({ value }) => value);
  if (values.every((value) => value === undefined)) return `_x${steps}`;
  const last = values.at(-1);
  if (values.every((value) => value === last)) return `${last}+0x${steps - 1}`;
  const left = steps - values.length;
  return [...values.map((value) => value ?? '_'), last === undefined ? `_x${left}` : `${last}+0x${left - 1}`].join(' ');
}
