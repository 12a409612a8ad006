import type { Answered } from '../../faults/harness/workload';
import type { Happened } from './cluster-faults';

/** A row of `npm run test:cluster`. All times in milliseconds. */
export interface Row {
  name: string;
  /** Name in `cluster-faults.ts`. */
  fault: string;
  /** Longest pause between answers 200, for adds and for gets. */
  pauseMs?: number;
  /** Longest pause between answers 200 for gets alone. */
  pauseOfGetsMs?: number;
  /** Whether no read may fail. */
  everyRead?: boolean;
  /** Time after the end of the fault until no call fails any more. */
  recoveredMs?: number;
  /** Time after the fault until every answer comes within the same time, and is 503, or 200 from a broker that is left. */
  refusedMs?: number;
  /** Whether outcomes of 504 may change until the standby is back. */
  openOutcomes?: boolean;
}

/** Requests to the system since a fault, and moments of `performance.now()`. */
export interface Measured {
  adds: Answered[];
  gets: Answered[];
  from: number;
  until: number;
  happened: Happened;
}

/** Longest time without an answer 200, in milliseconds. */
export function pause(answers: readonly Answered[], from: number, until: number): number {
  const times = answers.flatMap(({ status, answeredAt }) => (status === 200 && answeredAt !== undefined ? [answeredAt] : []));
  const moments = [from, ...times.filter((time) => time > from && time < until).sort((a, b) => a - b), until];
  return Math.max(...moments.slice(1).map((moment, index) => moment - moments[index]));
}

/** Milliseconds from the end of the fault to the last request that failed. */
export function recovery({ adds, gets, happened: { repairedAt = Infinity } }: Measured): number {
  const failed = [...adds, ...gets].filter(({ status, askedAt }) => status !== 200 && askedAt > repairedAt);
  return Math.max(0, ...failed.map(({ askedAt }) => askedAt - repairedAt));
}

/** Milliseconds from the beginning of the outage to the last request that was not answered 503 or 200 within the bound. */
export function refusal({ adds, gets, happened }: Measured, boundMs: number): number {
  const { from, until } = happened.outage ?? { from: 0, until: 0 };
  const isPrompt = ({ status, askedAt, answeredAt = Infinity }: Answered) =>
    [200, 503].includes(status ?? 0) && answeredAt - askedAt <= boundMs;
  const others = [...adds, ...gets].filter((ask) => ask.askedAt > from && ask.askedAt < until - boundMs && !isPrompt(ask));
  return Math.max(0, ...others.map(({ askedAt }) => askedAt - from));
}

/** The bounds of a row that did not hold, as texts. */
export function missedBounds(
  { pauseMs, pauseOfGetsMs = pauseMs, everyRead, recoveredMs, refusedMs }: Row,
  measured: Measured,
): string[] {
  const { adds, gets, from, until } = measured;
  const [pauseOfAdds, pauseOfGets] = [adds, gets].map((answers) => pause(answers, from, until));
  const failedReads = gets.filter(({ status }) => status !== 200).length;
  return [
    pauseMs !== undefined && pauseOfAdds > pauseMs && `adds paused for ${seconds(pauseOfAdds)} s`,
    pauseOfGetsMs !== undefined && pauseOfGets > pauseOfGetsMs && `gets paused for ${seconds(pauseOfGets)} s`,
    everyRead && failedReads > 0 && `${failedReads} failed reads`,
    recoveredMs !== undefined && recovery(measured) > recoveredMs && `recovered after ${seconds(recovery(measured))} s`,
    refusedMs !== undefined &&
      refusal(measured, refusedMs) > refusedMs &&
      `503 only after ${seconds(refusal(measured, refusedMs))} s`,
  ].filter((miss) => typeof miss === 'string');
}

export const seconds = (ms: number): string => (ms / 1000).toFixed(2);
