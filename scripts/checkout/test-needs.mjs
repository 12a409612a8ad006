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
  build: /\bdist\/(apps|libs)\b|scripts\/(setup|tool)\.mjs/,
};
const NEEDS = /** @type {(keyof typeof SIGNS)[]} */ (Object.keys(SIGNS));
const OF_TESTS = /spec\.ts$|\/libs\/testing\/|\/(apps|libs)\/[^/]+\/test\/|\/test\//;

/**
 * @typedef {Record<keyof typeof SIGNS, boolean>} Needs
 * @param {string[]} args of Jest
 * @returns {Promise<Needs>} of the files that these choose, together
 */
export async function needsOfChosen(args) {
  const { stdout } = await promisify(execFile)(process.execPath, [JEST, ...args, '--listTests', '--json', '--passWithNoTests'], {
    cwd: ROOT,
    maxBuffer: 16 * 1024 * 1024,
  });
  const files = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  return needsOf(files, (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined));
}

/**
 * @param {string[]} files
 * @param {(path: string) => string | undefined} textOf a file; undefined when there is none
 * @returns {Needs}
 */
export function needsOf(files, textOf) {
  const seen = new Set(files);
  const needs = { broker: false, database: false, exampleTools: false, build: false };
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
