import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** What a running stack keeps in the checkout: data, secrets, logs. Deleting it is a fresh start. */
export const LOCAL = join(ROOT, '.local');

export const SERVICES = ['users', 'notifications', 'gateway'];

/** @param {string} service */
export const mainOf = (service) => join(ROOT, 'dist/apps', service, 'src/main.js');
