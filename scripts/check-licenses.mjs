// Part of `npm run lint`: every package has a licence that was looked at. A licence is compared as its author wrote it: another form of the
// same expression is one more line here.
import { commandLine } from './processes/command-line.mjs';
import { ROOT } from './checkout/project.mjs';
import { idOf, isInImage, packagesOf, readLockfile } from './checkout/packages.mjs';

/** Of packages in the image: they ask for their text to be passed on, which is in each package, and for nothing else. */
const IN_IMAGE = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT'];
/** Of tools, which nobody gets from us. */
const OF_TOOLS = [
  ...IN_IMAGE,
  '(Apache-2.0 OR MIT)',
  '(MIT OR CC0-1.0)',
  'Apache-2.0 AND MIT',
  'CC-BY-4.0',
  'CC0-1.0',
  // axe-core, unchanged.
  'MPL-2.0',
  'Python-2.0',
];

const { list, json } = commandLine(
  {
    command: 'npm run licenses --',
    about: 'Checks the licence of every package in package-lock.json, and lists those of the image.',
    options: {
      check: { help: 'lists nothing: npm run lint' },
      json: { help: 'one JSON object: { packages: [{ name, version, license }] }' },
    },
    notes: ['The licences that are allowed are in scripts/check-licenses.mjs.'],
    examples: { '': 'the packages of the image', '--json': 'for programs' },
  },
  ({ values }) => ({ list: !values.check, json: values.json }),
);

const lockfile = readLockfile(ROOT);
const image = packagesOf(lockfile, isInImage);
const tools = packagesOf(lockfile, (entry) => !isInImage(entry));
const problems = [
  ...image.filter(({ license }) => !IN_IMAGE.includes(license)).map((one) => `${idOf(one)}, in the image: ${one.license}`),
  ...tools.filter(({ license }) => !OF_TOOLS.includes(license)).map((one) => `${idOf(one)}: ${one.license}`),
];
if (problems.length > 0) {
  console.error(`These licences are not allowed by scripts/check-licenses.mjs:\n  ${problems.join('\n  ')}`);
  process.exitCode = 1;
} else if (list) {
  console.log(
    json ? JSON.stringify({ packages: image }) : image.map((one) => `${one.license.padEnd(14)}${idOf(one)}`).join('\n'),
  );
}
