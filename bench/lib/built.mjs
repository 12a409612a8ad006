import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../../scripts/checkout/project.mjs';

/**
 * The compiled module of a source file.
 * @param {string} path
 */
export const built = (path) => createRequire(import.meta.url)(join(ROOT, 'dist', `${path}.js`));
