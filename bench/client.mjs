// One client in a process of its own, so that its CPU is not the system's. Started by lib/load.mjs.
// stdin: a JSON line, see Load in lib/load.mjs. It ends when its stdin does.
// stdout: a JSON line when the warm-up is over, one with the figures, and one at the first answer that is not 200.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Client } from 'undici';
import { bodiesOf } from './workloads.mjs';

const GIVE_UP_MS = 30_000;
const LONGEST_WARM_UP_MS = 20_000;
/** An open loop that is this far behind has found the limit, and would only fill memory. */
const MOST_WAITING = 100_000;

const input = createInterface({ input: process.stdin }).on('close', () => process.exit(0));
const [load] = await once(input, 'line');
const { urls, path, headers, workload, connections, warmUpSeconds, warmUpCalls, seconds, ratePerSecond } = JSON.parse(load);
/** @param {string} event @param {object} [figures] */
const say = (event, figures) => process.stdout.write(`${JSON.stringify({ event, ...figures })}\n`);
const nextBody = bodiesOf(workload);
const limits = { pipelining: 1, bodyTimeout: GIVE_UP_MS, headersTimeout: GIVE_UP_MS };
const idle = Array.from({ length: connections }, (_, number) => new Client(urls[number % urls.length], limits));
/**
 * When calls were due that no connection was free for.
 * @type {number[]}
 */
const waiting = [];
/** @type {number[]} */
const latencies = [];
/**
 * From when they were sent: without what calls waited for a connection.
 * @type {number[]}
 */
const served = [];
/**
 * Answers in each second.
 * @type {number[]}
 */
const paces = [];
/**
 * Of those that were under way when the time was over: they count when no other has come back.
 * @type {number[]}
 */
const tail = [];
let phase = 'warm up';
/** The warm-up was over. */
let since = 0;
let inFlight = 0;
let answered = 0;
/** Calls whose work began before the figures: half of each of them, on average, was done then. */
let doneBefore = 0;

const start = performance.now();
if (ratePerSecond) openLoop();
else for (const client of idle.splice(0)) send(client, performance.now());

setTimeout(beginWhenWarm, warmUpSeconds * 1000);

/** Code that has hardly run is slow code, however long it took. */
function beginWhenWarm() {
  if (phase === 'over') return;
  if (answered < warmUpCalls && performance.now() - start < LONGEST_WARM_UP_MS) return void setTimeout(beginWhenWarm, 20);
  phase = 'measuring';
  since = performance.now();
  doneBefore = answered + inFlight / 2;
  say('measuring');
  setTimeout(() => {
    phase = 'over';
    const measured = performance.now() - since;
    whenIdle(() => {
      const none = latencies.length === 0;
      const seconds = (none ? performance.now() - since : measured) / 1000;
      say('measured', { seconds, callsWithTail: answered - doneBefore, ...figuresOf(none ? tail : latencies) });
    });
  }, seconds * 1000);
}

function openLoop() {
  let sent = 0;
  const timer = setInterval(() => {
    if (phase === 'over') return clearInterval(timer);
    for (const due = ((performance.now() - start) / 1000) * ratePerSecond; sent < due; sent++) {
      const dueAt = start + (sent / ratePerSecond) * 1000;
      const client = idle.pop();
      if (client) send(client, dueAt);
      else if (waiting.push(dueAt) > MOST_WAITING) fail('falling behind this rate');
    }
  }, 1);
}

/** @param {Client} client @param {number} dueAt latency counts from here: a call that waits for a connection is as late as its caller sees it */
function send(client, dueAt) {
  inFlight++;
  const sentAt = performance.now();
  let status = 0;
  /** @param {NodeJS.ErrnoException} [error] */
  const done = (error) => {
    inFlight--;
    answered++;
    if (status !== 200 || error) fail(error ? (error.code ?? error.message) : status);
    const now = performance.now();
    const latency = now - dueAt;
    if (phase === 'measuring') count(latency, now - sentAt, now);
    if (phase === 'over') return void tail.push(latency);
    const nextDue = ratePerSecond ? waiting.shift() : now;
    if (nextDue === undefined) idle.push(client);
    else send(client, nextDue);
  };
  client.dispatch(
    { path, method: 'POST', headers, body: nextBody() },
    /** @type {import('undici').Dispatcher.DispatchHandler} */ ({
      onRequestStart() {},
      onResponseStart: (_controller, statusCode) => void (status = statusCode),
      onResponseData() {},
      onResponseEnd: () => done(),
      onResponseError: (_controller, error) => done(error),
    }),
  );
}

/** @param {number} latency @param {number} service @param {number} now */
function count(latency, service, now) {
  latencies.push(latency);
  served.push(service);
  const second = Math.floor((now - since) / 1000);
  paces[second] = (paces[second] ?? 0) + 1;
}

/**
 * One is enough: a run with errors has no figures.
 * @param {string | number} outcome
 */
function fail(outcome) {
  phase = 'over';
  say('failed', { outcome });
}

/** @param {() => void} then */
function whenIdle(then) {
  if (inFlight === 0) return then();
  setTimeout(() => whenIdle(then), 5);
}

/** @param {number[]} measured */
function figuresOf(measured) {
  const sorted = Float64Array.from(measured).sort();
  /** @param {Float64Array} values @param {number} share */
  const at = (values, share) => values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? null;
  const [p50, p90, p99, p999, max] = [0.5, 0.9, 0.99, 0.999, 1].map((share) => at(sorted, share));
  const sortedServed = Float64Array.from(served).sort();
  const [servedP50, servedP99] = [0.5, 0.99].map((share) => at(sortedServed, share));
  // The last second is not a whole one.
  const slowestSecond = Math.min(...Array.from({ length: Math.max(1, paces.length - 1) }, (_, second) => paces[second] ?? 0));
  return { calls: sorted.length, p50, p90, p99, p999, max, servedP50, servedP99, slowestSecond };
}
