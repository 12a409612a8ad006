import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { UserError } from '../checkout/machine.mjs';
import { runQuietly } from '../processes/command.mjs';
import { canInstall } from '../servers/rabbitmq-program.mjs';

const INSTALLER = fileURLToPath(new URL('./kubectl-install.sh', import.meta.url));
/** The Kustomize in older ones knows no components, or orders the objects in another way. */
const OLDEST_KUSTOMIZE = 5;

const execute = promisify(execFile);

/** @returns {Promise<boolean>} whether this machine has a kubectl that renders as the committed files were rendered */
export async function hasKubectl() {
  const output = await execute('kubectl', ['version', '--client', '--output=json'], { timeout: 20_000 }).catch(() => undefined);
  const version = /^v(\d+)\./.exec(JSON.parse(output?.stdout || '{}').kustomizeVersion ?? '');
  return Number(version?.[1]) >= OLDEST_KUSTOMIZE;
}

/**
 * Installs kubectl where that is possible.
 * @param {(what: string) => void} onProgress called before something that takes long
 * @throws {UserError} naming the package
 */
export async function needKubectl(onProgress) {
  if (await hasKubectl()) return;
  if (canInstall()) {
    onProgress('installing kubectl with apt-get (once)');
    await runQuietly('sh', [INSTALLER], { name: 'The installation of kubectl', mayOutliveUs: true });
    if (await hasKubectl()) return;
  }
  throw new UserError(
    'This needs kubectl 1.27 or later, for Kustomize 5. On Debian 13 and later: apt-get install kubernetes-client; elsewhere see https://kubernetes.io/docs/tasks/tools/',
  );
}

/**
 * @param {string} folder with a kustomization
 * @returns {Promise<string>} the objects
 */
export async function kustomize(folder) {
  const { stdout } = await execute('kubectl', ['kustomize', folder], { timeout: 60_000, maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}
