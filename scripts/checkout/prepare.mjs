import { join } from 'node:path';
import { build, buildBundles, buildInStep, bundlesInStep } from './build.mjs';
import { dependenciesInStep, installDependencies } from './dependencies.mjs';
import { waitForLock } from '../processes/lock.mjs';
import { report, reportFailure, stage } from './progress.mjs';
import { LOCAL } from './project.mjs';

/** Whether there is nothing to install and nothing to build but bundles. */
export const isPrepared = () => dependenciesInStep() && buildInStep();

/**
 * Installs and builds what is not in step. One at a time in a checkout: `npm start` and `npm test` may meet.
 * @param {{ install?: boolean }} [what] install: false builds only
 */
export function prepare({ install = true } = {}) {
  return alone(async () => {
    if (install && !dependenciesInStep()) await stage('installing packages (npm ci)', installDependencies);
    if (!buildInStep()) await stage('building', build);
    else if (!bundlesInStep()) await stage('bundling', buildBundles);
  });
}

/** Builds everything anew. */
export const rebuild = () => alone(build);

/**
 * For a script that does nothing beside it: a failure is shown, and ends the script with 1.
 * @param {() => Promise<void>} work
 */
export async function orEnd(work) {
  try {
    await work();
  } catch (error) {
    reportFailure(error);
    process.exit(1);
  }
}

/** @param {() => Promise<void>} work */
async function alone(work) {
  const release = await waitForLock(join(LOCAL, 'prepare.lock'), (pid) =>
    report(`waiting for process ${pid}, which installs or builds here`),
  );
  try {
    await work();
  } finally {
    release();
  }
}
