import type { BrokerQueue } from './broker-queues';
import { merged, quantile, since, type Histogram } from './metrics-text';
import type { WatchedProcess } from './process';
import type { Reading } from './reading';

/** Most tenants with a rate: the busiest. */
const MOST_TENANTS = 20;

interface Pair {
  before: Reading;
  now: Reading;
  seconds: number;
}

/** Name of the series with the length of a queue. */
export const lengthOf = (queue: string): string => `queue ${queue} messages`;

/** One point of every series, from what the processes said last. @param ofBroker queues as the broker knows them, which is older */
export function measuresOf(
  processes: readonly WatchedProcess[],
  ofBroker: readonly Pick<BrokerQueue, 'name' | 'ready'>[] = [],
): Map<string, number> {
  const measures = new Map(ofBroker.map(({ name, ready }) => [lengthOf(name), ready]));
  for (const service of new Set(processes.map((one) => one.service))) {
    const pairs = processes.filter((one) => one.service === service).flatMap(pairOf);
    ofService(measures, service, pairs);
  }
  for (const one of processes) ofProcess(measures, one);
  for (const { name, messages, age } of queuesOf(processes)) {
    measures.set(lengthOf(name), messages);
    measures.set(`queue ${name} age`, age);
  }
  return measures;
}

function ofService(measures: Map<string, number>, service: string, pairs: readonly Pair[]): void {
  if (pairs.length === 0) return;
  const rate = (counter: (reading: Reading) => number) => sum(pairs.map((pair) => rateOf(pair, counter)));
  measures.set(
    `${service} rate`,
    rate(({ work }) => work),
  );
  measures.set(
    `${service} failed`,
    rate(({ failed }) => failed),
  );
  measures.set(
    `${service} refused`,
    rate(({ refused }) => refused),
  );
  const latency = merged(pairs.map(({ before, now }) => since(now.latency, before.latency)));
  measures.set(`${service} p50`, quantile(latency, 0.5));
  measures.set(`${service} p99`, quantile(latency, 0.99));

  const writers = pairs.filter(({ before, now }) => before.writer && now.writer);
  if (writers.length > 0) {
    const seconds = merged(writers.map(({ before, now }) => since(now.writer!.seconds, before.writer!.seconds)));
    const notifications = sum(writers.map((pair) => rateOf(pair, ({ writer }) => writer?.notifications ?? 0)));
    const batches = sum(writers.map((pair) => rateOf(pair, ({ writer }) => writer?.batches ?? 0)));
    measures.set('writer notifications', notifications);
    measures.set('writer size', notifications / batches);
    measures.set('writer p50', quantile(seconds, 0.5));
    measures.set('writer p99', quantile(seconds, 0.99));
    measures.set('writer waiting', sum(writers.map(({ now }) => now.writer?.waiting ?? 0)));
  }
  const outboxes = pairs.filter(({ now }) => now.outbox);
  if (outboxes.length > 0) {
    // All processes of a service look at one table.
    measures.set(`outbox ${service} events`, Math.max(...outboxes.map(({ now }) => now.outbox?.events ?? 0)));
    measures.set(`outbox ${service} oldest`, Math.max(...outboxes.map(({ now }) => now.outbox?.oldestSeconds ?? 0)));
    measures.set(
      `outbox ${service} published`,
      sum(outboxes.map((pair) => rateOf(pair, ({ outbox }) => outbox?.published ?? 0))),
    );
  }
}

function ofProcess(measures: Map<string, number>, one: WatchedProcess): void {
  for (const pair of pairOf(one)) {
    measures.set(
      `process ${one.address} rate`,
      rateOf(pair, ({ work }) => work),
    );
    measures.set(
      `process ${one.address} cpu`,
      rateOf(pair, ({ cpuSeconds }) => cpuSeconds),
    );
  }
}

export interface OperationState {
  name: string;
  rate: number;
  failed: number;
  p50: number;
  p99: number;
}

/** Operations of a service in the last 10 s, the busiest first. */
export function operationsOf(processes: readonly WatchedProcess[], service: string): OperationState[] {
  const pairs = processes.filter((one) => one.service === service).flatMap(pairOf);
  const names = new Set(pairs.flatMap(({ now }) => [...now.operations.keys()]));
  const states = [...names].map((name) => {
    const rate = (counter: 'count' | 'failed') =>
      sum(pairs.map((pair) => rateOf(pair, ({ operations }) => operations.get(name)?.[counter] ?? 0)));
    const of = ({ operations }: Reading): Histogram => operations.get(name)?.latency ?? new Map<number, number>();
    const latency = merged(pairs.map(({ before, now }) => since(of(now), of(before))));
    return { name, rate: rate('count'), failed: rate('failed'), p50: quantile(latency, 0.5), p99: quantile(latency, 0.99) };
  });
  return states.filter(({ rate }) => rate > 0).sort((a, b) => b.rate - a.rate);
}

export interface QueueState {
  name: string;
  messages: number;
  consumers: number;
  limit: number;
  /** Seconds from publication to the turn, which 99 % of the commands of the last 10 s did not exceed; NaN without one. */
  age: number;
}

/** Queues of this system, by name. All processes of a service say the same of them. */
export function queuesOf(processes: readonly WatchedProcess[]): QueueState[] {
  const queues = new Map<string, QueueState>();
  for (const { now } of processes) for (const queue of now?.queues ?? []) queues.set(queue.name, { ...queue, age: NaN });
  for (const queue of queues.values()) {
    const none: Histogram = new Map();
    const ages = processes
      .flatMap(pairOf)
      .map(({ before, now }) => since(now.ages.get(queue.name) ?? none, before.ages.get(queue.name) ?? none));
    queue.age = quantile(merged(ages), 0.99);
  }
  return [...queues.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Calls a second of the busiest API keys, over HTTP. */
export function tenantsOf(processes: readonly WatchedProcess[]): [key: string, perSecond: number][] {
  const rates = new Map<string, number>();
  for (const one of processes) for (const [key, rate] of one.tenants) rates.set(key, (rates.get(key) ?? 0) + rate);
  return [...rates]
    .filter(([, rate]) => rate > 0)
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST_TENANTS);
}

function pairOf({ before, now }: WatchedProcess): Pair[] {
  return before && now ? [{ before, now, seconds: (now.at - before.at) / 1000 }] : [];
}

const rateOf = ({ before, now, seconds }: Pair, counter: (reading: Reading) => number): number =>
  Math.max(0, counter(now) - counter(before)) / seconds;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
