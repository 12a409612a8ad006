// npm run lint:manifests: every object in the renderings of deploy/kubernetes, without a cluster.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './processes/command-line.mjs';
import { orEnd, prepare } from './checkout/prepare.mjs';
import { ROOT } from './checkout/project.mjs';
import { renderingDrift, writtenDrift } from './manifests/drift.mjs';
import { hasKubectl } from './manifests/kubectl.mjs';
import { OVERLAYS, overlayManifests } from './manifests/overlays.mjs';
import { manifestProblems } from './manifests/problems.mjs';
import { typeProblems } from './manifests/types.mjs';

commandLine({
  command: 'npm run lint:manifests --',
  about: 'Checks every object in the renderings of deploy/kubernetes, without a cluster.',
  examples: { '': 'all of them' },
});
await orEnd(prepare);

const project = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const overlays = Object.fromEntries(OVERLAYS.map((overlay) => [overlay, overlayManifests(overlay)]));
const problems = [
  ...writtenDrift(),
  // npm run manifests -- --check insists on a kubectl.
  ...((await hasKubectl()) ? await renderingDrift() : []),
  ...(await typeProblems(overlays)),
  ...OVERLAYS.flatMap((overlay) => manifestProblems(overlays[overlay], project).map((problem) => `${overlay}: ${problem}`)),
];
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exitCode = 1;
}
