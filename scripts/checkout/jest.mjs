import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../processes/command.mjs';
import { UserError } from './machine.mjs';
import { report as say } from './progress.mjs';
import { ROOT } from './project.mjs';

/** Jest writes its report and then ends, unless something that a test has started is still open: then it would never end. */
const END_MS = 20_000;
const LOOK_MS = 1_000;

/**
 * Runs Jest in front of the user and counts.
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @param {string} outputFile where Jest leaves its report
 * @returns {Promise<{ passed: number, failed: number }>} a file that could not be run counts as a failure
 * @throws {UserError} when the arguments select no test: a mistyped path must not look like success
 */
export async function runJest(args, env, outputFile) {
  rmSync(outputFile, { force: true });
  const running = new AbortController();
  const watch = setInterval(() => {
    if (!existsSync(outputFile)) return;
    clearInterval(watch);
    setTimeout(() => running.abort(), END_MS).unref();
  }, LOOK_MS);
  const code = await runCommand(
    process.execPath,
    // Without tests Jest would end before it writes its report: whether there were any is judged below.
    [join(ROOT, 'node_modules/jest/bin/jest.js'), ...args, '--passWithNoTests', '--json', `--outputFile=${outputFile}`],
    // --json prints the report on stdout as well; what people read is on stderr.
    { cwd: ROOT, env: { ...process.env, ...env, NODE_ENV: 'test' }, stdio: ['ignore', 'ignore', 'inherit'] },
    running.signal,
  );
  clearInterval(watch);
  const report = readReport(outputFile);
  const passed = report?.numPassedTests ?? 0;
  const failed = (report?.numFailedTests ?? 0) + (report?.numRuntimeErrorTestSuites ?? 0);
  if (code === 0 && passed + failed === 0) throw new UserError(`No test was run, because "${args.join(' ')}" selects none.`);
  if (running.signal.aborted)
    say(`Jest was ended ${END_MS / 1000} s after its last test: a test has left a process, a timer or a connection open`);
  return { passed, failed: code === 0 ? failed : Math.max(failed, 1) };
}

/** @param {string} file */
function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined; // Jest ended before it could write it
  }
}
