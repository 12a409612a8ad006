import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Folder of the nearest package.json above, because a source, its compiled file and the bundle of a service have different depths. */
export const PROJECT_ROOT = rootOf(__dirname);

function rootOf(directory: string): string {
  return existsSync(join(directory, 'package.json')) ? directory : rootOf(dirname(directory));
}
