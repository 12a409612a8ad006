// npm run manifests: writes the manifests of deploy/kubernetes that come from the code, and renders the overlays.
import { prepare } from './checkout/prepare.mjs';
import { report, reportFailure } from './checkout/progress.mjs';
import { renderingDrift, writeManifests, writtenDrift } from './manifests/drift.mjs';
import { needKubectl } from './manifests/kubectl.mjs';
import { commandLine } from './processes/command-line.mjs';

const check = commandLine(
  {
    command: 'npm run manifests --',
    about: 'Writes the manifests of deploy/kubernetes that come from the code, and renders the overlays with kubectl.',
    options: { check: { help: 'writes nothing, and fails when a file is out of date' } },
    notes: ['npm test checks the documents of the renderings, and this too where kubectl is at hand.'],
    examples: {
      '': 'after a change of a manifest, of the rights of an account or of a queue',
      '--check': 'whether that was done',
    },
  },
  ({ values }) => values.check,
);

try {
  await prepare();
  await needKubectl(report);
  if (check) {
    const problems = [...writtenDrift(), ...(await renderingDrift())];
    if (problems.length > 0) console.error(problems.join('\n'));
    process.exitCode = problems.length > 0 ? 1 : 0;
  } else {
    for (const path of await writeManifests()) console.log(`${path} written`);
  }
} catch (error) {
  reportFailure(error);
  process.exitCode = 1;
}
