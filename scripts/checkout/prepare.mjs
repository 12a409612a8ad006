import { join } from 'node:path';
import { build, buildBundles, buildInStep, bundlesInStep } from './build.mjs';
import { dependenciesInStep, installDependencies } from './dependencies.mjs';
import { waitForLock } from '../processes/lock.mjs';
import { stage, report } from './progress.mjs';
import { LOCAL } from './project.mjs';

/** Whether there is nothing to install and nothing to build but bundles. */
export const isPrepared = () => dependenciesInStep() && buildInStep();

/**
 * Installs and builds what is not in step. One at a time in a checkout: `npm start` and `npm test` may meet.
 * @param {{ install?: boolean }} [what] install: false builds only
 */
export async function prepare({ install = true } = {}) {
  const release = await waitForLock(join(LOCAL, 'prepare.lock'), (pid) =>
    report(`waiting for process ${pid}, which installs or builds here`),
  );
  try {
    if (install && !dependenciesInStep()) await stage('installing packages (npm ci)', installDependencies);
    if (!buildInStep()) await stage('building', build);
    else if (!bundlesInStep()) await stage('bundling', buildBundles);
  } finally {
    release();
  }
}
