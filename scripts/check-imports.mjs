// Part of `npm run lint`: the rules for imports. Both configurations in one process: the second then finds the files parsed.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cruise } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { ROOT } from './checkout/project.mjs';
import { commandLine } from './processes/command-line.mjs';

const CHECKS = [
  { file: '.dependency-cruiser.cjs', folders: ['apps', 'libs', 'bench'] },
  { file: '.dependency-cruiser.folders.cjs', folders: ['apps', 'libs'] },
];

commandLine({
  command: 'node scripts/check-imports.mjs',
  about: 'Checks the rules for imports.',
  examples: { '': 'a part of npm run lint' },
});
process.chdir(ROOT);
const load = createRequire(import.meta.url);
for (const { file, folders } of CHECKS) {
  const { options, ...ruleSet } = load(join(ROOT, file));
  const { output, exitCode } = await cruise(
    folders,
    { ...options, ruleSet, validate: true, outputType: 'err' },
    options.enhancedResolveOptions,
    { tsConfig: extractTSConfig(options.tsConfig.fileName) },
  );
  console.log(output);
  if (exitCode > 0) process.exitCode = 1;
}
