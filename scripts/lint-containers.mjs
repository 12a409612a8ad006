// npm run lint:containers: the Dockerfile, the compose file and the packages of the image, without a container engine.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { composeProblems } from './containers/compose.mjs';
import { dockerfileProblems } from './containers/dockerfile.mjs';
import { versionProblems } from './containers/versions.mjs';
import { commandLine } from './processes/command-line.mjs';
import { orEnd, prepare } from './checkout/prepare.mjs';
import { APPS, ROOT } from './checkout/project.mjs';
import { bundleProblems } from './checkout/packages.mjs';

commandLine({
  command: 'npm run lint:containers --',
  about: 'Checks the Dockerfile, the compose file and the packages of the image, without a container engine.',
  examples: { '': 'all of them' },
});
await orEnd(prepare);

const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const composeFile = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
const problems = [
  ...dockerfileProblems(dockerfile).map((problem) => `Dockerfile: ${problem}`),
  ...(await composeProblems(composeFile, dockerfile)).map((problem) => `docker-compose.yml: ${problem}`),
  ...versionProblems(dockerfile, composeFile),
  ...bundleProblems(ROOT, APPS),
];
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exitCode = 1;
}
