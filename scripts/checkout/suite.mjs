import { join } from 'node:path';
import { endCommands } from '../processes/command.mjs';
import { watchParent } from '../processes/parent.mjs';
import { temporaryDirectory } from '../processes/temporary-directory.mjs';
import { runJest } from './jest.mjs';
import { checkMachine } from './machine.mjs';
import { prepare } from './prepare.mjs';
import { report, reportFailure } from './progress.mjs';

/**
 * Runs the tests of a project of Jest that has a command of its own, and ends this process: 0, or 1 after a failure.
 * @param {object} suite
 * @param {string} suite.project
 * @param {string[]} [suite.args] of Jest
 * @param {() => Promise<NodeJS.ProcessEnv>} [suite.before] after the build; returns variables for the tests
 * @param {(directory: string) => NodeJS.ProcessEnv} [suite.env] of the tests, given a folder that goes with this process
 * @param {(directory: string, counts: { passed: number, failed: number, seconds: number }) => void} [suite.after] also after failed tests
 * @param {(directory: string) => void} [suite.interrupted] before a signal ends this process
 * @param {() => Promise<void>} [suite.end] removes what `before` has made, before this process ends
 */
export async function runSuite({ project, args = [], before, env, after, interrupted, end }) {
  const directory = temporaryDirectory(project);
  let leaving = false;
  /** @param {number} code */
  const leave = async (code) => {
    if (leaving) return;
    leaving = true;
    endCommands();
    await end?.().catch(reportFailure);
    directory.remove();
    process.exit(code);
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(name, () => {
      if (!leaving) interrupted?.(directory.path);
      void leave(130);
    });
  }
  watchParent(() => void leave(1));
  try {
    checkMachine();
    await prepare();
    const found = await before?.();
    const since = Date.now();
    const { passed, failed } = await runJest(
      ['--selectProjects', project, '--runInBand', ...args],
      { ...found, ...env?.(directory.path) },
      join(directory.path, 'report.json'),
    );
    after?.(directory.path, { passed, failed, seconds: (Date.now() - since) / 1000 });
    report(`${passed} passed, ${failed} failed`);
    await leave(failed > 0 || passed === 0 ? 1 : 0);
  } catch (error) {
    if (!leaving) reportFailure(error);
    await leave(1);
  }
}
