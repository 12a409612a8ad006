import { runQuietly } from '../processes/command.mjs';
import { ROOT } from './project.mjs';

/** The very npm that runs us when there is one, else the one in PATH. @returns {[command: string, ...before: string[]]} */
export function npmCommand() {
  const self = process.env.npm_execpath;
  return self?.endsWith('.js') ? [process.execPath, self] : ['npm'];
}

/**
 * Runs npm, silent unless it fails.
 * @param {string[]} args
 * @param {string} [cwd]
 */
export function npm(args, cwd = ROOT) {
  const [command, ...before] = npmCommand();
  return runQuietly(command, [...before, ...args], { cwd, name: `npm ${args.slice(0, 2).join(' ')}` });
}
