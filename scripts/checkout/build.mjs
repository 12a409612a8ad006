import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runQuietly } from '../processes/command.mjs';
import { bundle } from './bundle.mjs';
import { ROOT } from './project.mjs';
import { fingerprintOf, hashOf, readSources } from './sources.mjs';

const DIST = join(ROOT, 'dist');
const STAMP = join(DIST, '.built-from');
const BUNDLES_STAMP = join(DIST, '.bundled-from');

/** The fingerprint of the sources that dist/ was made from; undefined when it is not the outcome of one whole build. */
export const builtFrom = () => (existsSync(STAMP) ? readFileSync(STAMP, 'utf8') : undefined);

/** @param {string | undefined} fingerprint of the sources that dist/ is made from now; undefined for a mixture */
export function stampBuild(fingerprint) {
  mkdirSync(DIST, { recursive: true });
  if (fingerprint) writeFileSync(STAMP, fingerprint);
  else rmSync(STAMP, { force: true });
}

/** Whether dist/ was made from the sources as they are now. */
export const buildInStep = () => builtFrom() === fingerprintOf(readSources());

/** Of what the bundles are made from, and of how. */
const bundleFingerprint = () =>
  `${fingerprintOf(readSources())} ${hashOf(readFileSync(join(ROOT, 'scripts/checkout/bundle.mjs')))}`;

/** Whether the bundles were made from the sources as they are now: `npm run dev` compiles into dist/ without them. */
export const bundlesInStep = () => existsSync(BUNDLES_STAMP) && readFileSync(BUNDLES_STAMP, 'utf8') === bundleFingerprint();

/** Builds everything anew, so that nothing of a deleted source stays behind. */
export async function build() {
  const fingerprint = fingerprintOf(readSources());
  rmSync(DIST, { recursive: true, force: true });
  await runQuietly(process.execPath, ['node_modules/@nestjs/cli/bin/nest.js', 'build', '--all'], {
    cwd: ROOT,
    name: 'The build',
  });
  stampBuild(fingerprint);
  await buildBundles();
}

/** Makes the bundles anew from dist/apps, which is in step. */
export async function buildBundles() {
  const fingerprint = bundleFingerprint();
  await bundle(DIST);
  writeFileSync(BUNDLES_STAMP, fingerprint);
}
