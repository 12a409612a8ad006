import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runQuietly } from '../processes/command.mjs';
import { ROOT } from './project.mjs';

const DIST = join(ROOT, 'dist');
const STAMP = join(DIST, '.built-from');
const SETTINGS = /^(package-lock\.json|nest-cli\.json|\.swcrc|tsconfig.*\.json)$/;

/** A fingerprint of everything the build reads. By content: git gives a file a new time without changing it. */
function sourcesFingerprint() {
  const hash = createHash('sha256');
  /** @param {string} path */
  const add = (path) =>
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(ROOT, path)))
      .update('\0');
  /** @param {string} directory */
  const walk = (directory) => {
    for (const entry of readdirSync(join(ROOT, directory), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${directory}/${entry.name}`;
      if (entry.name === 'fixtures') continue; // of tests
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile() && !entry.name.endsWith('.spec.ts')) add(path);
    }
  };
  readdirSync(ROOT)
    .filter((name) => SETTINGS.test(name))
    .sort()
    .forEach(add);
  ['apps', 'libs'].filter((name) => existsSync(join(ROOT, name))).forEach(walk);
  return hash.digest('hex');
}

/** Whether dist/ was made from the sources as they are now. */
export function buildInStep() {
  return existsSync(STAMP) && readFileSync(STAMP, 'utf8') === sourcesFingerprint();
}

/** Builds everything anew, so that nothing of a deleted source stays behind. */
export async function build() {
  const fingerprint = sourcesFingerprint();
  rmSync(DIST, { recursive: true, force: true });
  await runQuietly(process.execPath, ['node_modules/@nestjs/cli/bin/nest.js', 'build', '--all'], {
    cwd: ROOT,
    name: 'The build',
  });
  mkdirSync(DIST, { recursive: true });
  writeFileSync(STAMP, fingerprint);
}
