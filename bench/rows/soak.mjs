import { report } from '../../scripts/lib/progress.mjs';
import { measure } from '../lib/load.mjs';
import { messagesLeft } from '../lib/queues.mjs';
import { footprint } from '../lib/proc.mjs';
import { median, two, whole } from '../lib/statistics.mjs';

export const title = 'load at 70 % of the peak, 64 connections';

const SHARE = 0.7;
const SAMPLES = 60;
const MOST_MEMORY = 150e6;
const MOST_P99 = 10;
/** Between the second quarter and the last one; the first quarter is start-up. */
const MOST_GROWTH = 0.1;

export async function run(laboratory, { seconds, soakSeconds }) {
  const system = await laboratory.system('ours');
  const base = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 } };
  const { perSecond: peak } = await measure(laboratory, system, { ...base, seconds });
  const samples = [];
  let timer;
  const begin = () => {
    const every = (soakSeconds / SAMPLES) * 1000;
    timer = setInterval(() => void sample(system).then((one) => samples.push(one), report), every);
  };
  let found;
  try {
    found = await measure(laboratory, system, { ...base, seconds: soakSeconds, ratePerSecond: peak * SHARE }, begin);
  } finally {
    clearInterval(timer);
  }
  await system.settle();
  const left = await messagesLeft(laboratory.rabbit.url);
  return { verdicts: [latency(found, soakSeconds), ...growth(samples, soakSeconds), queues(left)], tables: [grown(samples)] };
}

async function sample(system) {
  const entries = system.children.map(async ({ name, pid }) => {
    const heap = await system.metric(name, 'nodejs_heap_size_used_bytes');
    return [name, { ...footprint(pid), heap }];
  });
  return Object.fromEntries(await Promise.all(entries));
}

function latency({ p50, p99, p999, perSecond }, soakSeconds) {
  return {
    what: `${title}, ${soakSeconds} s: p99`,
    target: `under ${MOST_P99} × p50`,
    reached: `${two(p99 / p50)} × (p50 ${two(p50)} ms, p99 ${two(p99)} ms, p99.9 ${two(p999)} ms at ${whole(perSecond)}/s)`,
    spread: '',
    met: p99 < MOST_P99 * p50,
  };
}

const KINDS = [
  { kind: 'memory', what: 'resident memory', show: megabytes },
  { kind: 'heap', what: 'heap', show: megabytes },
  { kind: 'descriptors', what: 'file descriptors', show: whole },
];

function growth(samples, soakSeconds) {
  const names = Object.keys(samples[0]);
  const most = (name, kind) => Math.max(...samples.map((one) => one[name][kind]));
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

function queues(left) {
  return {
    what: 'messages left in queues afterwards',
    target: 'none',
    reached: whole(left),
    spread: '',
    met: left === 0,
  };
}

function grown(samples) {
  const names = Object.keys(samples[0]);
  const rows = names.flatMap((name) =>
    KINDS.map(({ kind, what, show }) => [name, what, ...[2, 3, 4].map((number) => show(quarter(samples, name, kind, number)))]),
  );
  return { title: 'Medians by quarter of the load', head: ['process', 'what', 'second', 'third', 'last'], rows };
}

function quarter(samples, name, kind, number) {
  const size = samples.length / 4;
  return median(samples.slice(Math.floor((number - 1) * size), Math.ceil(number * size)).map((one) => one[name][kind]));
}

const grownBy = (samples, name, kind) => quarter(samples, name, kind, 4) / quarter(samples, name, kind, 2) - 1;

function megabytes(bytes) {
  return `${whole(bytes / 1e6)} MB`;
}
