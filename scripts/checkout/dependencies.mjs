import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from './npm.mjs';
import { ROOT } from './project.mjs';

/** @param {string} file */
const readPackages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

/**
 * Whether node_modules holds what package-lock.json says. npm keeps its own record of what it installed, so this is
 * right however npm was run, and nothing has to be remembered.
 */
export function dependenciesInStep() {
  try {
    const wanted = readPackages(join(ROOT, 'package-lock.json'));
    const installed = readPackages(join(ROOT, 'node_modules/.package-lock.json'));
    return Object.entries(wanted).every(([path, entry]) => {
      if (path === '') return true;
      const found = installed[path];
      // An optional one may be for another platform, and what only it needs is marked optional as well.
      return found ? found.version === entry.version : entry.optional === true;
    });
  } catch {
    return false;
  }
}

/** npm's own limits are two tries and up to a minute between them: without a network it would say nothing for minutes. */
const FETCH_LIMITS = [
  '--fetch-retries=5',
  '--fetch-retry-mintimeout=500',
  '--fetch-retry-factor=2',
  '--fetch-retry-maxtimeout=8000',
];

/** Installs exactly what package-lock.json names, whatever NODE_ENV or npm's settings say of development packages. */
export async function installDependencies() {
  await npm(['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', ...FETCH_LIMITS]);
}
