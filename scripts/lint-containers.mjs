// npm run lint:containers: the Dockerfile and the compose file, without a container engine.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { composeProblems } from './containers/compose.mjs';
import { dockerfileProblems } from './containers/dockerfile.mjs';
import { versionProblems } from './containers/versions.mjs';
import { prepare } from './checkout/prepare.mjs';
import { ROOT } from './checkout/project.mjs';

await prepare();

const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const composeFile = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
const problems = [
  ...dockerfileProblems(dockerfile).map((problem) => `Dockerfile: ${problem}`),
  ...(await composeProblems(composeFile, dockerfile)).map((problem) => `docker-compose.yml: ${problem}`),
  ...versionProblems(dockerfile, composeFile),
];
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exitCode = 1;
}
