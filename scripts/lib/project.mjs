import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** What a running stack keeps in the checkout: data, secrets, logs. Deleting it is a fresh start. */
export const LOCAL = join(ROOT, '.local');

export const SERVICES = ['users', 'notifications', 'gateway'];

/**
 * How node runs a service; Dockerfile and docker-compose.yml say the same. Measured in docs/benchmarks.md, "Memory": V8 collects sooner and
 * keeps nothing for long because of a guess, so a busy process has half the memory on Node 20 and 24 alike, for the same processor time.
 */
export const NODE_FLAGS = [
  '--enable-source-maps',
  '--no-allocation-site-pretenuring',
  '--max-semi-space-size=8',
  '--heap-growing-percent=30',
];

/** @param {string} service */
export const mainOf = (service) => join(ROOT, 'dist/apps', service, 'src/main.js');
