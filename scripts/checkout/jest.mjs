import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../processes/command.mjs';
import { UserError } from './machine.mjs';
import { ROOT } from './project.mjs';

/**
 * Runs Jest in front of the user and counts.
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @param {string} outputFile where Jest leaves its report
 * @returns {Promise<{ passed: number, failed: number }>} a file that could not be run counts as a failure
 * @throws {UserError} when the arguments select no test: a mistyped path must not look like success
 */
export async function runJest(args, env, outputFile) {
  const code = await runCommand(
    process.execPath,
    // Without tests Jest would end before it writes its report: whether there were any is judged below.
    [join(ROOT, 'node_modules/jest/bin/jest.js'), ...args, '--passWithNoTests', '--json', `--outputFile=${outputFile}`],
    // --json prints the report on stdout as well; what people read is on stderr.
    { cwd: ROOT, env: { ...process.env, ...env, NODE_ENV: 'test' }, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const report = readReport(outputFile);
  const passed = report?.numPassedTests ?? 0;
  const failed = (report?.numFailedTests ?? 0) + (report?.numRuntimeErrorTestSuites ?? 0);
  if (code === 0 && passed + failed === 0) throw new UserError(`No test was run, because "${args.join(' ')}" selects none.`);
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
