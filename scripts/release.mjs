// npm run release: the steps of docs/releasing.md that a program can do. It never commits, tags, pushes or publishes.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { prepare as prepareCheckout } from './checkout/prepare.mjs';
import { APPS, ROOT } from './checkout/project.mjs';
import { UsageError, commandLine } from './processes/command-line.mjs';
import { runToEnd } from './checkout/run-to-end.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';
import { FOLDER, installedProblems, lookAtRelease, nextCommands, writeArtefacts } from './release/artefacts.mjs';
import { bundleProblems } from './checkout/packages.mjs';
import { planVersion } from './release/prepare-version.mjs';
import { isVersion } from './release/versions.mjs';

const { step, version, dryRun } = commandLine(
  {
    command: 'npm run release --',
    about:
      'Makes a release: docs/releasing.md has all steps. It never commits, tags, pushes or publishes, and says which commands do.',
    words: { name: 'STEP [VERSION]', help: 'prepare VERSION, which changes files, or build', least: 1, most: 2 },
    options: { 'dry-run': { help: 'all checks that take seconds; writes nothing' } },
    notes: [
      '  prepare VERSION   gives every file the version, the changes under [Unreleased] the version and the date of today (UTC)\n' +
        `  build             of the commit with that change: client, SBOM and checksums in ${FOLDER}`,
      'Every problem is named, not only the first.',
    ],
    examples: {
      'prepare 0.3.0 --dry-run': 'whether 0.3.0 can be prepared, and which files would change',
      'prepare 0.3.0': 'changes them',
      'build --dry-run': 'whether this commit is a release',
      build: 'makes its files, in a minute',
    },
  },
  ({ words: [step, version], values }) => {
    if (step !== 'prepare' && step !== 'build')
      throw new UsageError(`There is no step ${step}; there are: prepare VERSION, build.`);
    if (step === 'build' && version !== undefined) throw new UsageError('build has the version of package.json.');
    if (step === 'prepare' && !isVersion(version ?? ''))
      throw new UsageError('prepare needs a VERSION of three numbers, such as 0.3.0.');
    return { step, version, dryRun: values['dry-run'] };
  },
);

const directory = temporaryDirectory('release');
await runToEnd(
  () => (step === 'prepare' ? prepare(version) : build()),
  () => directory.remove(),
);

/** @param {string} version @returns {number} exit code */
function prepare(version) {
  const { problems, changed } = planVersion(ROOT, version, new Date().toISOString().slice(0, 10));
  if (problems.length > 0) return refuse(problems);
  if (!dryRun) for (const [file, text] of changed) writeFileSync(join(ROOT, file), text);
  console.log(`${dryRun ? 'Would change' : 'Changed'}:\n  ${[...changed.keys()].join('\n  ')}`);
  console.log(`\nNext, by hand:

  npm run docs:generate
  npm test
  git commit --all --message "Release ${version}"
  npm run release -- build
`);
  return 0;
}

/** @returns {Promise<number>} exit code */
async function build() {
  const { problems, release, sbom } = lookAtRelease(ROOT, directory.path);
  if (problems.length > 0) return refuse(problems);
  if (dryRun) console.log(`${release.version} can be built: ${JSON.parse(sbom).components.length} packages in the image.\n`);
  else {
    await prepareCheckout();
    const found = [...bundleProblems(ROOT, APPS), ...(await installedProblems(ROOT, sbom, directory.path))];
    if (found.length > 0) return refuse(found);
    const files = await writeArtefacts(ROOT, release, sbom);
    console.log(`${FOLDER}:\n  ${files.join('\n  ')}\n`);
  }
  console.log(nextCommands(release));
  return 0;
}

/** @param {string[]} problems @returns {number} exit code */
function refuse(problems) {
  console.error(`This cannot be released:\n  ${problems.join('\n  ')}`);
  return 1;
}
