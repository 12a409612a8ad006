import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { changelogProblems, newestRelease, withRelease } from './changelog.mjs';
import { git, isAfter, renumbered, treeProblems, versionOf, withAcceptedMigrations } from './versions.mjs';

/**
 * The changes of a release in the tree.
 * @param {string} root
 * @param {string} version
 * @param {string} date of the release
 * @returns {{ problems: string[], changed: Map<string, string> }} every reason against it, and the new texts of files
 */
export function planVersion(root, version, date) {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const current = versionOf(root);
  const { problems, changed } = renumbered(root, current, version);
  problems.push(...treeProblems(root), ...changelogProblems(changelog, version));
  if (isAfter(current, version)) problems.push(`package.json has the version ${current}, which comes after ${version}`);
  const newest = newestRelease(changelog)?.name;
  if (newest && !isAfter(version, newest)) problems.push(`the newest release of CHANGELOG.md is ${newest}`);
  if (git(root, 'tag', '--list', `v${version}`)) problems.push(`there is a tag v${version} already`);
  changed.set('CHANGELOG.md', withRelease(changelog, version, date));
  const migrations = withAcceptedMigrations(root);
  if (!migrations.accepted) changed.set(migrations.file, migrations.text);
  return { problems, changed };
}
