import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../checkout/project.mjs';
import { newestRelease } from '../release/changelog.mjs';
import { table } from './table.mjs';

/** The supported versions: the newest release of CHANGELOG.md, and nothing before it. */
export function supportedVersions() {
  const newest = newestRelease(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'));
  const main = 'the newest commit of the main branch';
  const rows = newest
    ? [
        [newest.name, 'yes'],
        [main, 'yes, with the next release'],
        [
          'earlier releases',
          'no: upgrade, one release at a time ([docs/compatibility.md](docs/compatibility.md#order-of-a-deployment))',
        ],
      ]
    : [[main, 'yes; no version has been released yet']];
  return table(['Version', 'Fixes'], rows);
}
