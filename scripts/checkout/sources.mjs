import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './project.mjs';

const SETTINGS = /^(package-lock\.json|nest-cli\.json|\.swcrc|tsconfig.*\.json)$/;
const SPEC = /spec\.ts$/;

/**
 * Where the build finds its sources, from the root: `libs/testing` and the tests beside `src` are not among them.
 * @returns {string[]}
 */
export const sourceRoots = () =>
  Object.values(JSON.parse(readFileSync(join(ROOT, 'nest-cli.json'), 'utf8')).projects).map(({ sourceRoot }) => sourceRoot);

/** @param {string} path from the root */
export const isSetting = (path) => SETTINGS.test(path);

/**
 * Everything the build reads, each with a hash of its content. By content: git gives a file a new time without changing it.
 * @returns {Map<string, string>} by path from the root
 */
export function readSources() {
  const files = readdirSync(ROOT).filter(isSetting);
  for (const root of sourceRoots().filter((directory) => existsSync(join(ROOT, directory))))
    for (const entry of readdirSync(join(ROOT, root), { withFileTypes: true, recursive: true })) {
      const path = join(entry.parentPath, entry.name).slice(ROOT.length + 1);
      if (entry.isFile() && path.endsWith('.ts') && !SPEC.test(path)) files.push(path);
    }
  return hashesOf(files);
}

/**
 * A file that is gone by now is left out: git removes files between the listing and the reading.
 * @param {string[]} paths from the root
 * @returns {Map<string, string>}
 */
export function hashesOf(paths) {
  const hashes = new Map();
  for (const path of paths) {
    try {
      hashes.set(path, hashOf(readFileSync(join(ROOT, path))));
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
  return hashes;
}

/**
 * One fingerprint for all of them, in whatever order.
 * @param {Map<string, string>} sources hashes by path
 */
export const fingerprintOf = (sources) =>
  hashOf(
    [...sources]
      .map(([path, hash]) => `${path} ${hash}\n`)
      .sort()
      .join(''),
  );

/** @param {string | Buffer} content */
export const hashOf = (content) => createHash('sha256').update(content).digest('hex');
