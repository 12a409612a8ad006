import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The folder of a running stack in the checkout: data, secrets, logs. Deleting it is a fresh start. */
export const LOCAL = join(ROOT, '.local');

/** The environment of the services of a running stack: tools look there when their environment names no system. */
export const STACK_ENV = join(LOCAL, 'stack.env');

export const SERVICES = ['users', 'notifications', 'gateway'];

/** Everything with a bundle: the services, and the operator's page. */
export const APPS = [...SERVICES, 'operator'];

/**
 * How node runs a service; Dockerfile and docker-compose.yml say the same. V8 collects sooner, and keeps nothing for long because of a guess:
 * a busy process has less memory on Node 24, for little processor time (docs/speed.md, "Memory").
 */
export const NODE_FLAGS = [
  '--enable-source-maps',
  '--no-allocation-site-pretenuring',
  '--max-semi-space-size=16',
  '--heap-growing-percent=100',
];

const load = createRequire(import.meta.url);

/** Loads a module of the build. @param {string} path below dist/ */
export const built = (path) => load(join(ROOT, 'dist', path));

/** A service and its packages in one file, which loads in less than half the time of main.js. @param {string} service */
export const bundleOf = (service) => join(ROOT, 'dist', `${service}.js`);

/** A service in files of its own, of which `npm run dev` compiles one at a time. @param {string} service */
export const mainOf = (service) => join(ROOT, 'dist/apps', service, 'src/main.js');
