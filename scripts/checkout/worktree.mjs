import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand, runQuietly } from '../processes/command.mjs';
import { UserError } from './machine.mjs';
import { report } from './progress.mjs';
import { ROOT } from './project.mjs';

/**
 * Builds another version in a worktree, with the packages that are installed here: those of its own only matter when they differ by a lot.
 * @param {string} ref a git tag or commit
 * @param {string} directory
 */
export async function buildVersion(ref, directory) {
  const known = await runCommand('git', ['cat-file', '-e', `${ref}^{commit}`], { cwd: ROOT, stdio: 'ignore' });
  if (known !== 0) throw new UserError(`There is no commit "${ref}" here. In a shallow clone: git fetch --unshallow --tags`);
  await removeVersion(directory);
  mkdirSync(dirname(directory), { recursive: true });
  await runQuietly('git', ['worktree', 'add', '--detach', directory, ref], { cwd: ROOT, name: 'git worktree' });
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  report(`building ${ref} ...`);
  await runQuietly(process.execPath, ['node_modules/@nestjs/cli/bin/nest.js', 'build', '--all'], {
    cwd: directory,
    name: `The build of ${ref}`,
  });
}

/** @param {string} directory of buildVersion */
export async function removeVersion(directory) {
  if (existsSync(directory)) rmSync(directory, { recursive: true, force: true });
  await runQuietly('git', ['worktree', 'prune'], { cwd: ROOT });
}
