import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './project.mjs';

const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');
/** Imports of types load nothing. */
const IMPORT = /^(?:import|export)\b(?! type\b)[^;]*?\bfrom '(@app\/|\.{1,2}\/)([^']+)'/gm;

/** By what a test file holds, or a test helper that it imports. Production code is not asked: there the same words mean other things. */
const SIGNS = {
  broker: /TEST_AMQP_URL|TEST_RABBITMQ_MANAGEMENT_URL/,
  database: /TEST_DATABASE_URL/,
  exampleTools: /TEST_EXAMPLE_TOOLS/,
  ownServers: /\bPrivateServer\.start/,
  build: /\bdist\/(apps|libs)\b|scripts\/(setup|tool)\.mjs/,
};
const NEEDS = /** @type {(keyof typeof SIGNS)[]} */ (Object.keys(SIGNS));
const OF_TESTS = /spec\.ts$|\/libs\/testing\/|\/(apps|libs)\/[^/]+\/test\/|\/test\//;

/** @param {string} path */
const textIn = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

/**
 * @typedef {Record<keyof typeof SIGNS, boolean>} Needs
 * @param {string[]} args of Jest
 * @returns {Promise<Needs>} of the files that these choose, together
 */
export async function needsOfChosen(args) {
  return needsOf(await filesOf(args), textIn);
}

/**
 * Each test file of these projects in one of two lists, which take about as long: those that use the database of the run, and all others.
 * A file that also starts a server of its own is among the others.
 * @param {string[]} projects
 */
export async function byDatabase(projects) {
  const files = await filesOf(['--selectProjects', ...projects]);
  const usesDatabase = (/** @type {string} */ file) => {
    const { database, ownServers } = needsOf([file], textIn);
    return database && !ownServers;
  };
  return { database: files.filter(usesDatabase), others: files.filter((file) => !usesDatabase(file)) };
}

/** @param {string[]} args of Jest @returns {Promise<string[]>} the files that these choose */
async function filesOf(args) {
  const { stdout } = await promisify(execFile)(process.execPath, [JEST, ...args, '--listTests', '--json', '--passWithNoTests'], {
    cwd: ROOT,
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

/**
 * @param {string[]} files
 * @param {(path: string) => string | undefined} textOf a file; undefined when there is none
 * @returns {Needs}
 */
export function needsOf(files, textOf) {
  const seen = new Set(files);
  const needs = { broker: false, database: false, exampleTools: false, ownServers: false, build: false };
  for (const path of seen) {
    const text = textOf(path) ?? '';
    for (const need of NEEDS) needs[need] ||= SIGNS[need].test(text);
    for (const [, start, rest] of text.matchAll(IMPORT)) {
      const imported = start === '@app/' ? join(ROOT, 'libs', rest.replace('/', '/src/')) : join(dirname(path), start, rest);
      if (OF_TESTS.test(imported)) seen.add(`${imported}.ts`);
    }
  }
  return needs;
}
