import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { UserError } from '../checkout/machine.mjs';
import { ROOT } from '../checkout/project.mjs';
import { runQuietly } from '../processes/command.mjs';

/** Set where nothing must be installed, by whatever is started: a single test file takes seconds, or says what is missing. */
export const INSTALL_NOTHING = 'INSTALL_NOTHING';

/** @param {string} path */
export const isExecutable = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

export const pathDirectories = () => (process.env.PATH ?? '').split(delimiter).filter(Boolean);

/** @param {string} program @returns {string | undefined} its file */
export const findProgram = (program) =>
  pathDirectories()
    .map((directory) => join(directory, program))
    .find(isExecutable);

/** @returns {boolean} whether we may and can install Debian packages */
export function canInstall() {
  if (process.env[INSTALL_NOTHING]) return false;
  if (process.getuid?.() !== 0 || !findProgram('apt-get')) return false;
  try {
    return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8'));
  } catch {
    return false;
  }
}

/**
 * Installs with apt-get. A dpkg interrupted half-way needs repair by hand, so this one is left to finish even if we are stopped.
 * @param {string} name for messages
 * @param {string[]} packages one only, where there are units
 * @param {string[]} [units] of systemd, which the package must not start
 */
export function install(name, packages, units = []) {
  const script = join(ROOT, 'scripts/programs', units.length > 0 ? 'install-server.sh' : 'apt-install.sh');
  return runQuietly('sh', [script, ...packages, ...units], { name: `The installation of ${name}`, mayOutliveUs: true });
}

/**
 * Installs a program where that is possible.
 * @param {object} program
 * @param {string} program.name
 * @param {() => boolean | Promise<boolean>} program.has
 * @param {string[]} program.packages
 * @param {string[]} [program.units] see {@link install}
 * @param {string} program.missing what to do without it
 * @param {(what: string) => void} onProgress called before something that takes long
 * @throws {UserError} with `missing`
 */
export async function needProgram({ name, has, packages, units, missing }, onProgress) {
  if (await has()) return;
  if (canInstall()) {
    onProgress(`installing ${name} with apt-get (once)`);
    await install(name, packages, units);
    if (await has()) return;
  }
  throw new UserError(missing);
}
