import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Each of these names the version at least once; the manifests name it as the tag of the image. */
const NUMBERED = ['package.json', 'package-lock.json', 'libs/client/package.json', 'docker-compose.yml', 'docs/kubernetes.md'];
const MANIFESTS = 'deploy/kubernetes';
const ACCEPTED = 'scripts/check-migrations.mjs';
const ACCEPTED_LINE = /^const ACCEPTED = (\d+);$/m;

/** @param {string} root @param {string[]} args */
export const git = (root, ...args) =>
  execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, TZ: 'UTC' },
  }).trim();

/** @param {string} root @returns {string} the version of package.json */
export const versionOf = (root) => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;

/** @param {string} version @returns {RegExp} finds it in all the forms in which the files have it */
const inFiles = (version) =>
  new RegExp(
    `(?<="name": "(?:@collaboration-backend/client|collaboration-backend)",\\s+"version": "|collaboration-backend:|newTag: )${version.replaceAll('.', '\\.')}(?![\\w.-])`,
    'g',
  );

/**
 * @param {string} root
 * @param {string} from
 * @param {string} to
 * @returns {{ problems: string[], changed: Map<string, string> }} the new text of each file that names the version `from`
 */
export function renumbered(root, from, to) {
  const files = [...NUMBERED, ...git(root, 'ls-files', MANIFESTS).split('\n')];
  const changed = new Map();
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8');
    if (inFiles(from).test(text)) changed.set(file, text.replace(inFiles(from), to));
  }
  const problems = NUMBERED.filter((file) => !changed.has(file)).map(
    (file) => `${file} does not have the version ${from} of package.json`,
  );
  return { problems, changed };
}

/**
 * A migration of a release is accepted as it is: check-migrations looks at younger ones.
 * @param {string} root
 * @returns {{ file: string, text: string, accepted: boolean }} the check with the newest migration, and whether it has it already
 */
export function withAcceptedMigrations(root) {
  const migrations = git(root, 'ls-files', 'apps/*/src/db/migrations/*').match(/(?<=\/)\d{13}(?=-)/g) ?? [];
  const newest = String(Math.max(...migrations.map(Number)));
  const text = readFileSync(join(root, ACCEPTED), 'utf8');
  return {
    file: ACCEPTED,
    text: text.replace(ACCEPTED_LINE, `const ACCEPTED = ${newest};`),
    accepted: ACCEPTED_LINE.exec(text)?.[1] === newest,
  };
}

/** @param {string} root @returns {string[]} */
export function treeProblems(root) {
  const files = git(root, 'status', '--porcelain').split('\n').filter(Boolean);
  return files.length > 0 ? [`files that are changed and not committed: ${files.length}`] : [];
}

/** @param {string} text whether it is a version: releases have three numbers and nothing after them */
export const isVersion = (text) => /^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/.test(text);

/** Whether one version comes after another. @param {string} one @param {string} other */
export function isAfter(one, other) {
  const [left, right] = [one, other].map((version) => version.split('.').map(Number));
  const place = left.findIndex((number, index) => number !== right[index]);
  return place >= 0 && left[place] > right[place];
}
