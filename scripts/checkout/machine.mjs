import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './project.mjs';

/** A condition that the user can mend: shown as its message alone, without a stack. */
export class UserError extends Error {}

/** @returns {string | undefined} why this Node cannot run the project */
export function nodeProblem() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const supported = (major === 20 && minor >= 19) || (major === 22 && minor >= 13) || (major === 24 && minor >= 11) || major > 24;
  return supported
    ? undefined
    : `Node ${process.versions.node} is not supported; install Node 20.19 or later, 22.13 or later, or 24.11 or later.`;
}

/** @param {string} program below the checkout @returns {string | undefined} why it cannot be run */
export const buildProblem = (program) =>
  existsSync(join(ROOT, program)) ? undefined : 'The project is not built yet: run npm start once, or npm run build.';

/** Throws when this Node, this system or this checkout cannot run the project. */
export function checkMachine() {
  if (process.platform === 'win32')
    throw new UserError('Windows itself is not supported; run this inside WSL, or use docker compose.');
  const problem = nodeProblem();
  if (problem) throw new UserError(problem);
  try {
    accessSync(ROOT, constants.W_OK);
  } catch ({ code }) {
    throw new UserError(
      `${ROOT} cannot be written to (${code}): packages, builds and data are kept in the checkout. Use a clone that can be written to.`,
    );
  }
}
