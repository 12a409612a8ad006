// Whether the fault suite notices: breaks one promise at a time in a copy of this checkout, and runs the test that has to fail then.
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './checkout/project.mjs';
import { MUTANTS } from '../test/faults/harness/mutants.mjs';
import { commandLine, unknown } from './processes/command-line.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';

const COPIED = [
  'apps',
  'libs',
  'scripts',
  'test',
  // The gateway serves these documents.
  'docs',
  'openapi.json',
  'asyncapi.json',
  'package.json',
  'package-lock.json',
  'nest-cli.json',
  '.swcrc',
  'tsconfig.json',
];
const JEST = ['node_modules/jest/bin/jest.js', '--selectProjects', 'faults', '--runInBand', '--forceExit'];

const chosen = commandLine(
  {
    command: 'npm run test:mutants --',
    about: 'Breaks one promise at a time in a copy of this checkout, and runs the test that has to fail then.',
    words: { name: 'PART', help: 'only the mutants with it in their names, see below; without one, all', most: 1 },
    notes: [`Mutants:\n${MUTANTS.map(({ name }) => `  ${name}`).join('\n')}`],
    examples: { '': 'all of them', 'auto-ack': 'one of them' },
  },
  ({ words: [part = ''] }) => {
    const found = MUTANTS.filter(({ name }) => name.includes(part));
    if (found.length === 0)
      throw unknown(
        'mutant',
        part,
        MUTANTS.map(({ name }) => name),
      );
    return found;
  },
);
let survivors = 0;
for (const mutant of chosen) {
  const { caught, output } = run(mutant);
  if (!caught) survivors++;
  process.stdout.write(`${caught ? 'caught  ' : 'SURVIVED'}  ${mutant.name}: ${mutant.test.join(', ')}\n`);
  if (!caught) process.stdout.write(`${output}\n`);
}
process.exit(survivors > 0 ? 1 : 0);

/** @param {import('../test/faults/harness/mutants.mjs').Mutant} mode */
function run({ edits, test: [file, title] }) {
  const copy = temporaryDirectory('mutant');
  try {
    for (const path of [...COPIED, 'jest.config.cjs']) cpSync(join(ROOT, path), join(copy.path, path), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy.path, 'node_modules'));
    for (const [path, from, to] of edits) {
      const source = readFileSync(join(copy.path, path), 'utf8');
      if (!source.includes(from)) throw new Error(`${path} does not contain: ${from}`);
      writeFileSync(
        join(copy.path, path),
        source.replace(from, () => to),
      );
    }
    /** @param {string[]} args */
    const node = (...args) => spawnSync(process.execPath, args, { cwd: copy.path, encoding: 'utf8' });
    const built = node('node_modules/@nestjs/cli/bin/nest.js', 'build', '--all');
    if (built.status !== 0) throw new Error(`The mutant does not build:\n${built.stdout}${built.stderr}`);
    const { status, stdout, stderr } = file.endsWith('.ts')
      ? node('scripts/test.mjs', file, '-t', title)
      : node(...JEST, '--testPathPatterns', file, '-t', title);
    // Where the system did not start, all the same, the test has not looked: what it found carries a seed.
    const output = `${stdout}${stderr}`;
    const hasLooked = file.endsWith('.ts') || /FAULT_SEED|"seed"/.test(output);
    return { caught: status !== 0 && /Tests: .*[1-9]\d* failed/.test(output) && hasLooked, output };
  } finally {
    copy.remove();
  }
}
