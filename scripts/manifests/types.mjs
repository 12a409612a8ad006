import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../checkout/project.mjs';
import { nameOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */

const COMPILER = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
/** From a folder in dist. */
const OWN_KINDS = '../../scripts/manifests/kinds';
const OPERATORS = ['rabbitmq.com/', 'postgresql.cnpg.io/', 'monitoring.coreos.com/', 'keda.sh/'];

/**
 * Unknown fields, missing fields and values of another type. Each object becomes a literal of its type, because the compiler refuses unknown
 * fields only there.
 * @param {Record<string, Manifest[]>} overlays
 * @returns {Promise<string[]>}
 */
export async function typeProblems(overlays) {
  const problems = [];
  /** @type {string[]} */
  const lines = [];
  /** @type {string[]} */
  const owners = [];
  for (const [overlay, manifests] of Object.entries(overlays)) {
    for (const manifest of manifests) {
      const type = typeOf(manifest);
      if (!type) problems.push(`${overlay}: ${nameOf(manifest)}: no types are known for ${manifest.apiVersion}`);
      else {
        const text = `export const object${lines.length}: ${type} = ${JSON.stringify(manifest, null, 1)};`;
        lines.push(text);
        owners.push(...text.split('\n').map(() => `${overlay}: ${nameOf(manifest)}`));
      }
    }
  }
  const output = await compile(`${lines.join('\n')}\n`);
  return [...problems, ...explained(output, owners)];
}

/**
 * In a folder of its own, because the checks and their test may run at the same time.
 * @param {string} source
 * @returns {Promise<string>} what the compiler says
 */
async function compile(source) {
  const folder = mkdtempSync(join(ROOT, 'dist/manifests-'));
  const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, types: [], incremental: false };
  try {
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: [], files: ['objects.ts'] }),
    );
    writeFileSync(join(folder, 'objects.ts'), source);
    return await promisify(execFile)(process.execPath, [COMPILER, '-p', folder, '--pretty', 'false'], { cwd: folder }).then(
      () => '',
      ({ stdout, message }) => stdout || message,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * @param {string} output of the compiler
 * @param {string[]} owners the object of each line
 */
function explained(output, owners) {
  if (output === '') return [];
  const errors = [...output.matchAll(/objects\.ts\((\d+),\d+\): error TS\d+: (.*(?:\n .*)*)/g)];
  return errors.length > 0 ? errors.map(([, line, message]) => `${owners[Number(line) - 1]}: ${message}`) : [output];
}

/** @param {Manifest} manifest */
function typeOf({ apiVersion, kind }) {
  if (OPERATORS.some((group) => apiVersion.startsWith(group))) return `import('${OWN_KINDS}').${kind}`;
  const published = `kubernetes-models/${apiVersion}/${kind}`;
  return existsSync(join(ROOT, 'node_modules', `${published}.d.ts`)) ? `import('${published}').I${kind}` : undefined;
}
