// npm run test:dev: how long a save takes under npm run dev, and which services it restarts. Touches files and changes none.
import { spawn } from 'node:child_process';
import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandLine } from './processes/command-line.mjs';
import { exitCode } from './processes/command.mjs';
import { freePorts } from './processes/free-port.mjs';
import { childrenOf, commandLine as commandLineOf } from './processes/processes.mjs';
import { startReaper } from './processes/reaper.mjs';
import { reportFailure } from './checkout/progress.mjs';
import { ROOT, SERVICES, mainOf } from './checkout/project.mjs';

const LIMITS_MS = { started: 1_000, ready: 4_000 };
const BROKEN = 'apps/users/src/does-not-compile.ts';
/**
 * Sources to save, each with the services that have to be started anew.
 * @type {[string, string[]][]}
 */
const SAVES = [
  ['apps/users/src/queries/exists.handler.ts', ['users']],
  ['apps/notifications/src/queries/get-notifications.handler.ts', ['notifications']],
  ['apps/gateway/src/server/envelope.ts', ['gateway']],
  ['libs/postgres/src/errors.ts', ['users', 'notifications']],
  ['libs/runtime/src/readiness.ts', SERVICES],
  ['libs/rabbitmq-admin/src/accounts/limits.ts', []],
];

commandLine({
  command: 'npm run test:dev --',
  about: 'Measures how long a save takes under npm run dev, and which services it restarts. Touches files and changes none.',
  notes: ['The system of npm run dev starts in this checkout, on a free port. No other system may run here at the same time.'],
  examples: { '': 'one save of each kind, and a file that does not compile' },
});

/** @typedef {{ line: string, at: number }} Line */

const [port] = await freePorts([undefined]);
const dev = spawn(process.execPath, ['scripts/dev.mjs'], {
  cwd: ROOT,
  env: { ...process.env, PORT: String(port) },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = exitCode(dev);
const reaper = startReaper('kill -TERM "$DEV"; rm -f "$BROKEN"', { DEV: String(dev.pid), BROKEN: join(ROOT, BROKEN) });
/** @type {Line[]} */
const lines = [];
/** @type {Set<() => void>} */
const heard = new Set();
createInterface({ input: dev.stdout }).on('line', (line) => {
  lines.push({ line, at: performance.now() });
  for (const listener of heard) listener();
});

let problems = 0;
try {
  await until('take effect when they are saved', 0, 300_000);
  for (const [path, expected] of SAVES) await measure(path, expected);
  await refuse();
} catch (error) {
  problems++;
  reportFailure(error);
} finally {
  rmSync(join(ROOT, BROKEN), { force: true });
  dev.kill('SIGINT');
  await ended;
  reaper.dismiss();
}
process.exitCode = problems > 0 ? 1 : 0;

/** @param {string} path @param {string[]} expected */
async function measure(path, expected) {
  const before = processes();
  const from = lines.length;
  const since = performance.now();
  utimesSync(join(ROOT, path), new Date(), new Date());
  await until(`${path}: `, from);
  const noticed = performance.now() - since;
  const started = await Promise.all(expected.map((name) => replaced(name, before[name])));
  const ready = await Promise.all(expected.map((name) => until(`${name} is ready`, from)));
  const after = processes();
  const restarted = SERVICES.filter((name) => after[name] !== before[name]);
  /** @param {number[]} moments */
  const latest = (moments) => Math.max(0, ...moments.map((at) => at - since));
  const [startedMs, readyMs] = [latest(started), latest(ready.map(({ at }) => at))];
  const right = restarted.join() === SERVICES.filter((name) => expected.includes(name)).join();
  const ok = right && startedMs <= LIMITS_MS.started && readyMs <= LIMITS_MS.ready;
  if (!ok) problems++;
  const figures = [`noticed after ${noticed.toFixed()} ms`];
  if (expected.length > 0) figures.push(`started after ${startedMs.toFixed()} ms, ready after ${readyMs.toFixed()} ms`);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${path}: ${figures.join(', ')}; restarted: ${restarted.join(', ') || 'none'}`);
}

/**
 * @param {string} name of a service
 * @param {number | undefined} pid
 * @returns {Promise<number>} when another process than that one was there
 */
async function replaced(name, pid) {
  for (let found; ; await sleep(10)) {
    found = processes()[name];
    if (found && found !== pid) return performance.now();
  }
}

/** A file that does not compile is shown, and nothing is restarted. */
async function refuse() {
  const before = processes();
  const from = lines.length;
  writeFileSync(join(ROOT, BROKEN), 'const x = ;\n');
  await until(`${BROKEN} does not compile`, from);
  const same = JSON.stringify(processes()) === JSON.stringify(before);
  if (!same) problems++;
  console.log(`${same ? 'ok    ' : 'FAILED'} ${BROKEN}: shown, and the processes go on`);
}

function processes() {
  const children = childrenOf(/** @type {number} */ (dev.pid));
  return Object.fromEntries(SERVICES.map((name) => [name, children.find((pid) => commandLineOf(pid).endsWith(mainOf(name)))]));
}

/**
 * @param {string} text
 * @param {number} from how many lines to pass over
 * @returns {Promise<Line>} the first one with that text
 */
function until(text, from, timeoutMs = 30_000) {
  return new Promise((resolve, reject) => {
    const look = () => {
      const found = lines.slice(from).find(({ line }) => line.includes(text));
      if (!found) return;
      heard.delete(look);
      clearTimeout(timer);
      resolve(found);
    };
    const timer = setTimeout(() => {
      heard.delete(look);
      reject(
        new Error(
          `npm run dev did not say "${text}". Its last lines:\n${lines
            .slice(-20)
            .map(({ line }) => line)
            .join('\n')}`,
        ),
      );
    }, timeoutMs);
    heard.add(look);
    look();
  });
}
