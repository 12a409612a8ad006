import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from './run-to-end.mjs';
import { temporaryDirectory } from '../processes/temporary-directory.mjs';
import { runJest } from './jest.mjs';
import { checkMachine } from './machine.mjs';
import { prepare } from './prepare.mjs';
import { report, reportFailure } from './progress.mjs';

/** @typedef {Record<string, any>} Row what a test has reported, see libs/testing/src/report.ts */

/**
 * Runs the tests of a project of Jest that has a command of its own, and ends this process: 0, or 1 after a failure.
 * @param {object} suite
 * @param {string} suite.project
 * @param {string[]} [suite.args] of Jest
 * @param {() => Promise<NodeJS.ProcessEnv>} [suite.before] after the build; returns variables for the tests
 * @param {NodeJS.ProcessEnv} [suite.env] of the tests
 * @param {(rows: Row[], counts: { passed: number, failed: number, seconds: number }) => void} [suite.after] also after failed tests
 * @param {(rows: Row[]) => void} [suite.interrupted] before a signal ends this process
 * @param {() => Promise<void>} [suite.end] removes what `before` has made, before this process ends
 */
export async function runSuite({ project, args = [], before, env, after, interrupted, end }) {
  const directory = temporaryDirectory(project);
  const file = join(directory.path, 'rows.jsonl');
  await runToEnd(
    async () => {
      checkMachine();
      await prepare();
      const found = await before?.();
      const since = Date.now();
      const { passed, failed } = await runJest(
        ['--selectProjects', project, '--runInBand', ...args],
        { ...found, ...env, TEST_REPORT: file },
        join(directory.path, 'report.json'),
      );
      after?.(rowsIn(file), { passed, failed, seconds: (Date.now() - since) / 1000 });
      report(`${passed} passed, ${failed} failed`);
      return failed > 0 || passed === 0 ? 1 : 0;
    },
    async (code) => {
      if (code === 130) interrupted?.(rowsIn(file));
      await end?.().catch(reportFailure);
      directory.remove();
    },
  );
}

/** @param {string} file @returns {Row[]} */
function rowsIn(file) {
  try {
    return readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  } catch {
    return []; // no test has reported anything
  }
}
