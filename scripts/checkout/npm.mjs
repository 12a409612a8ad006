import { runQuietly } from '../processes/command.mjs';
import { ROOT } from './project.mjs';

/**
 * Runs npm, silent unless it fails: the very npm that runs us when there is one, else the one in PATH.
 * @param {string[]} args
 */
export function npm(args) {
  const self = process.env.npm_execpath;
  const [command, ...before] = self?.endsWith('.js') ? [process.execPath, self] : ['npm'];
  return runQuietly(command, [...before, ...args], { cwd: ROOT, name: `npm ${args.slice(0, 2).join(' ')}` });
}
