import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ValidationSeverity, validate } from 'dockerfile-utils';
import { ROOT } from '../checkout/project.mjs';

const { ERROR } = ValidationSeverity;
const EVERYTHING_IS_AN_ERROR = {
  deprecatedMaintainer: ERROR,
  directiveCasing: ERROR,
  emptyContinuationLine: ERROR,
  instructionCasing: ERROR,
  instructionCmdMultiple: ERROR,
  instructionEntrypointMultiple: ERROR,
  instructionHealthcheckMultiple: ERROR,
  instructionJSONInSingleQuotes: ERROR,
  instructionWorkdirRelative: ERROR,
};

/**
 * Logical lines of a Dockerfile: comments gone, continued lines joined.
 * @param {string} dockerfile
 */
function instructions(dockerfile) {
  return dockerfile
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [keyword, ...words] = line.trim().split(/\s+/);
      return { keyword: keyword.toUpperCase(), words, rest: words.join(' ') };
    });
}

/**
 * The base images of the stages, with the defaults of ARG filled in. `scratch` is none.
 * @param {string} dockerfile
 */
export function baseImages(dockerfile) {
  const args = Object.fromEntries(
    instructions(dockerfile)
      .filter(({ keyword }) => keyword === 'ARG')
      .map(({ rest }) => rest.split(/=(.*)/s)),
  );
  return instructions(dockerfile)
    .filter(({ keyword }) => keyword === 'FROM')
    .map(({ words }) => words[0].replace(/\$\{(\w+)\}/g, (_, name) => args[name] ?? ''))
    .filter((image) => image !== 'scratch');
}

/**
 * The environment that the image gives to every process in it.
 * @param {string} dockerfile
 */
export function imageEnvironment(dockerfile) {
  const pairs = finalStage(dockerfile).filter(({ keyword }) => keyword === 'ENV');
  return Object.fromEntries(pairs.flatMap(({ words }) => words.map((word) => word.split(/=(.*)/s).slice(0, 2))));
}

/**
 * The words of the command of a container that chooses none.
 * @param {string} dockerfile
 */
export const imageCommand = (dockerfile) =>
  (finalStage(dockerfile).findLast(({ keyword }) => keyword === 'CMD')?.rest ?? '').split(/[\s",[\]]+/);

/** @param {string} dockerfile */
function finalStage(dockerfile) {
  const all = instructions(dockerfile);
  return all.slice(all.findLastIndex(({ keyword }) => keyword === 'FROM') + 1);
}

/** The labels of a release, and the build arguments that fill them. */
const LABELS = { version: 'VERSION', revision: 'REVISION', created: 'CREATED' };

/** @param {{ keyword: string, rest: string }[]} final stage */
function labelProblems(final) {
  const labels = final.filter(({ keyword }) => keyword === 'LABEL').map(({ rest }) => rest);
  const declared = final.filter(({ keyword }) => keyword === 'ARG').map(({ rest }) => rest);
  return Object.entries(LABELS).flatMap(([label, argument]) => {
    const wanted = `org.opencontainers.image.${label}="\${${argument}}"`;
    const isThere = declared.includes(argument) && labels.some((rest) => rest.split(' ').includes(wanted));
    return isThere ? [] : [`the last stage needs ARG ${argument} and the label ${wanted}`];
  });
}

/**
 * The imports of scripts between the stages: no engine runs here that would miss one.
 * @param {string} dockerfile
 * @returns {string[]} a problem for each file that a script imports and its stage does not have
 */
function importProblems(dockerfile) {
  /** @type {string[][]} */
  const stages = [];
  for (const { keyword, words } of instructions(dockerfile)) {
    if (keyword === 'FROM') stages.push([]);
    if (keyword === 'COPY' && !words.some((word) => word.startsWith('--from='))) stages.at(-1)?.push(...words.slice(0, -1));
  }
  return stages.flatMap((copied) => {
    const files = new Set(copied.filter((path) => path.endsWith('.mjs')));
    for (const file of files)
      for (const [, name] of readFileSync(join(ROOT, file), 'utf8').matchAll(/^(?:import|.* from) '(\.{1,2}\/[^']+)'/gm))
        files.add(join(dirname(file), name));
    const missing = [...files].filter((file) => !copied.some((path) => file === path || file.startsWith(`${path}/`)));
    return missing.map((file) => `${file} is imported, and the stage does not have it`);
  });
}

/** @param {string} dockerfile */
export function dockerfileProblems(dockerfile) {
  const problems = validate(dockerfile, EVERYTHING_IS_AN_ERROR).map(
    ({ range, message }) => `line ${range.start.line + 1}: ${message}`,
  );
  const final = finalStage(dockerfile);
  /** @param {string} keyword */
  const last = (keyword) => final.findLast((instruction) => instruction.keyword === keyword)?.rest;

  if (!/^[1-9]\d*(:\d+)?$/.test(last('USER') ?? ''))
    problems.push('the last stage needs a USER other than root, as a number: runAsNonRoot refuses names');
  if (last('STOPSIGNAL') !== 'SIGTERM') problems.push('STOPSIGNAL must be SIGTERM, which is what starts a drain');
  for (const { keyword, rest } of final.filter(({ keyword }) => keyword === 'CMD' || keyword === 'ENTRYPOINT')) {
    // npm and a shell keep SIGTERM to themselves.
    if (!/^\["node",/.test(rest)) problems.push(`${keyword} must be a list that starts with "node"`);
  }
  problems.push(...labelProblems(final), ...importProblems(dockerfile));
  const stages = instructions(dockerfile).flatMap(
    ({ keyword, rest }) => (keyword === 'FROM' && /\sAS\s+(\S+)$/i.exec(rest)?.[1]) || [],
  );
  for (const { keyword, words } of instructions(dockerfile).filter(({ keyword }) => keyword === 'COPY' || keyword === 'ADD')) {
    const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
    if (from && !stages.includes(from)) problems.push(`${keyword} --from=${from}: there is no such stage`);
    if (from) continue;
    for (const source of words.filter((word) => !word.startsWith('--')).slice(0, -1)) {
      if (!existsSync(join(ROOT, source))) problems.push(`${keyword} ${source}: there is no such file`);
      else if (isIgnored(source)) problems.push(`${keyword} ${source}: .dockerignore keeps it away from the engine`);
    }
  }
  return problems;
}

// Enough of the format for a file that excludes everything and then lets some paths in.
/** @param {string} path */
function isIgnored(path) {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n');
  const allowed = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  return lines.includes('*') && !allowed.some((prefix) => path === prefix || path.startsWith(`${prefix}/`));
}
