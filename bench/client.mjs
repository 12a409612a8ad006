// One client in a process of its own, so that its CPU is not the system's. Started by lib/load.mjs.
//   node bench/client.mjs '<JSON>'   see Load in lib/load.mjs
// stdout: one JSON line when the warm-up is over, one with the figures. It ends when its stdin does.
import { Client } from 'undici';
import { bodiesOf } from './workloads.mjs';

const { url, path, headers, workload, connections, warmUpSeconds, seconds, ratePerSecond, mayFail } = JSON.parse(process.argv[2]);
/** An open loop that is this far behind has found the limit, and would only fill memory. */
const MOST_WAITING = 100_000;
const GIVE_UP_MS = 30_000;

const nextBody = bodiesOf(workload);
const clients = Array.from(
  { length: connections },
  () => new Client(url, { pipelining: 1, bodyTimeout: GIVE_UP_MS, headersTimeout: GIVE_UP_MS }),
);
const idle = [...clients];
/** When calls were due that no connection was free for. */
const waiting = [];
const latencies = [];
const statuses = {};
const count = (status) => (statuses[status] = (statuses[status] ?? 0) + 1);
let phase = 'warm up';
let inFlight = 0;
let completed = 0;
let bytes = 0;

process.stdin.on('end', () => process.exit(0)).resume();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const start = performance.now();
if (ratePerSecond) {
  let sent = 0;
  const timer = setInterval(() => {
    if (phase === 'over') return clearInterval(timer);
    for (const due = ((performance.now() - start) / 1000) * ratePerSecond; sent < due; sent++) {
      const dueAt = start + (sent / ratePerSecond) * 1000;
      const client = idle.pop();
      if (client) send(client, dueAt);
      else if (waiting.push(dueAt) > MOST_WAITING) throw new Error('the system is too slow for this rate');
    }
  }, 1);
} else {
  for (const client of idle.splice(0)) send(client, performance.now());
}

setTimeout(() => {
  phase = 'measured';
  const since = performance.now();
  say({ event: 'measuring' });
  setTimeout(() => {
    phase = 'over';
    const duration = (performance.now() - since) / 1000;
    const late = waiting.splice(0).length;
    whenIdle(() => {
      const sorted = Float64Array.from(latencies).sort();
      const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
      const quantiles = { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: sorted.at(-1) ?? null };
      say({ event: 'measured', calls: completed, seconds: duration, statuses, late, bytes, ...quantiles });
    });
  }, seconds * 1000);
}, warmUpSeconds * 1000);

/** @param {number} dueAt the latency counts from here: a call that had to wait for a connection is as late as its caller sees it */
function send(client, dueAt) {
  inFlight++;
  let status = 0;
  const done = (error) => {
    inFlight--;
    const outcome = status || error?.code || 'error';
    count(outcome);
    if (outcome !== 200 && !mayFail && count.told !== outcome) {
      count.told = outcome;
      say({ event: 'failed', outcome });
    }
    if (phase === 'measured') {
      completed++;
      latencies.push(performance.now() - dueAt);
    }
    if (phase === 'over') return;
    if (!ratePerSecond) return send(client, performance.now());
    const next = waiting.shift();
    if (next === undefined) idle.push(client);
    else send(client, next);
  };
  client.dispatch(
    { path, method: 'POST', headers, body: nextBody() },
    {
      onRequestStart() {},
      onResponseStart(_controller, statusCode) {
        status = statusCode;
      },
      onResponseData(_controller, chunk) {
        bytes += chunk.length;
      },
      onResponseEnd() {
        done();
      },
      onResponseError(_controller, error) {
        status = 0;
        done(error);
      },
    },
  );
}

function whenIdle(then) {
  if (inFlight === 0) return then();
  setTimeout(() => whenIdle(then), 5);
}
