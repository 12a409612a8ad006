import { measure } from '../lib/load.mjs';
import { messagesLeft } from '../lib/queues.mjs';
import { footprint } from '../lib/proc.mjs';
import { median, two, whole } from '../lib/statistics.mjs';

export const title = 'load at 70 % of the peak, 64 connections';

/** @typedef {ReturnType<typeof footprint>} Footprint */
/** @typedef {keyof Footprint} Kind */
/** @typedef {Record<string, Footprint>} Sample */

const SHARE = 0.7;
const SAMPLES = 60;
const MOST_MEMORY = 150e6;
const MOST_P99 = 10;
/** Between the second quarter and the last one; the first quarter is start-up. */
const MOST_GROWTH = 0.1;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds, soakSeconds }) {
  const system = await laboratory.system('ours');
  const base = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 } };
  const peaks = [];
  for (let round = 0; round < rounds; round++) peaks.push((await measure(laboratory, system, { ...base, seconds })).perSecond);
  const heapBefore = await system.heap();
  /** @type {Sample[]} */
  const samples = [];
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const begin = () => {
    const every = (soakSeconds / SAMPLES) * 1000;
    timer = setInterval(() => samples.push(sample(system)), every);
  };
  let found;
  try {
    found = await measure(laboratory, system, { ...base, seconds: soakSeconds, ratePerSecond: median(peaks) * SHARE }, begin);
  } finally {
    clearInterval(timer);
  }
  await system.settle();
  const heapAfter = await system.heap();
  const left = await messagesLeft(laboratory.rabbit.url);
  return {
    verdicts: [
      latency(found, soakSeconds),
      ...growth(samples, soakSeconds),
      growthOfHeap(heapBefore, heapAfter, soakSeconds),
      queues(left),
    ],
    tables: [grown(samples)],
  };
}

/** @param {import('../lib/ours.mjs').Ours} system */
function sample(system) {
  return Object.fromEntries(system.children.map(({ name, pid }) => [name, footprint(Number(pid))]));
}

/**
 * A machine that is slower for a minute than while its peak was measured lets calls wait in the client: that shows in the slowest second.
 * @param {import('../lib/load.mjs').Run} options
 * @param {number} soakSeconds
 */
function latency({ p50, p99, p999, perSecond, servedP50, servedP99, slowestSecond }, soakSeconds) {
  // Most calls waited longer than they took: that was no load of 70 %, and p99 near p50 is no merit.
  const behind = p50 > 2 * servedP50;
  return {
    what: `${title}, ${soakSeconds} s: p99`,
    target: `under ${MOST_P99} × p50`,
    reached: `${behind ? 'did not keep up: ' : ''}${two(p99 / p50)} × (p50 ${two(p50)} ms, p99 ${two(p99)} ms, p99.9 ${two(p999)} ms at ${whole(perSecond)}/s)`,
    spread: `from when calls were sent: p50 ${two(servedP50)} ms, p99 ${two(servedP99)} ms; slowest second ${whole(slowestSecond)} answers`,
    met: !behind && p99 < MOST_P99 * p50,
  };
}

/** @type {{ kind: Kind, what: string, show: (value: number) => string }[]} */
const KINDS = [
  { kind: 'memory', what: 'resident memory', show: megabytes },
  { kind: 'descriptors', what: 'file descriptors', show: whole },
];

/** @param {Sample[]} samples @param {number} soakSeconds */
function growth(samples, soakSeconds) {
  const names = Object.keys(samples[0]);
  /** @param {string} name @param {Kind} kind */
  const most = (name, kind) => Math.max(...samples.map((one) => one[name][kind]));
  /** @param {(name: string) => string} show */
  const all = (show) => names.map((name) => `${name} ${show(name)}`).join(', ');
  return [
    {
      what: 'resident memory of gateway, users and writer at 64 connections',
      target: 'under 150 MB each',
      reached: all((name) => megabytes(most(name, 'memory'))),
      spread: '',
      met: names.every((name) => most(name, 'memory') < MOST_MEMORY),
    },
    ...KINDS.map(({ kind, what }) => ({
      what: `growth of ${what} over ${soakSeconds} s`,
      target: `flat: under ${MOST_GROWTH * 100} % from the second quarter to the last`,
      reached: all((name) => `${whole(100 * grownBy(samples, name, kind))} %`),
      spread: '',
      met: names.every((name) => grownBy(samples, name, kind) < MOST_GROWTH),
    })),
  ];
}

/**
 * The memory in use, without the garbage that V8 has yet to collect: that is part of the resident memory.
 * @param {Record<string, number>} before
 * @param {Record<string, number>} after
 * @param {number} soakSeconds
 */
function growthOfHeap(before, after, soakSeconds) {
  /** @param {string} name */
  const grown = (name) => after[name] / before[name] - 1;
  /** @param {(name: string) => string} show */
  const each = (show) =>
    Object.keys(after)
      .map((name) => `${name} ${show(name)}`)
      .join(', ');
  return {
    what: `growth of the heap in use over ${soakSeconds} s`,
    target: `flat: under ${MOST_GROWTH * 100} % from before the load to after it`,
    reached: each((name) => `${whole(100 * grown(name))} %`),
    spread: each((name) => `${megabytes(before[name])} to ${megabytes(after[name])}`),
    met: Object.keys(after).every((name) => grown(name) < MOST_GROWTH),
  };
}

/** @param {number} left */
function queues(left) {
  return {
    what: 'messages left in queues afterwards',
    target: 'none',
    reached: whole(left),
    spread: '',
    met: left === 0,
  };
}

/** @param {Sample[]} samples */
function grown(samples) {
  const names = Object.keys(samples[0]);
  const rows = names.flatMap((name) =>
    KINDS.map(({ kind, what, show }) => [name, what, ...[2, 3, 4].map((number) => show(quarter(samples, name, kind, number)))]),
  );
  return { title: 'Medians by quarter of the load', head: ['process', 'what', 'second', 'third', 'last'], rows };
}

/** @param {Sample[]} samples @param {string} name @param {Kind} kind @param {number} number */
function quarter(samples, name, kind, number) {
  const size = samples.length / 4;
  return median(samples.slice(Math.floor((number - 1) * size), Math.ceil(number * size)).map((one) => one[name][kind]));
}

/** @param {Sample[]} samples @param {string} name @param {Kind} kind */
const grownBy = (samples, name, kind) => quarter(samples, name, kind, 4) / quarter(samples, name, kind, 2) - 1;

/** @param {number} bytes */
function megabytes(bytes) {
  return `${whole(bytes / 1e6)} MB`;
}
