import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { needProgram } from '../programs/packages.mjs';

/** The Kustomize in older ones knows no components, or orders the objects in another way. */
const OLDEST_KUSTOMIZE = 5;

const execute = promisify(execFile);

/** @returns {Promise<boolean>} whether this machine has a kubectl that renders as the committed files were rendered */
export async function hasKubectl() {
  const output = await execute('kubectl', ['version', '--client', '--output=json'], { timeout: 20_000 }).catch(() => undefined);
  const version = /^v(\d+)\./.exec(JSON.parse(output?.stdout || '{}').kustomizeVersion ?? '');
  return Number(version?.[1]) >= OLDEST_KUSTOMIZE;
}

/** @param {(what: string) => void} onProgress called before something that takes long */
export const needKubectl = (onProgress) =>
  needProgram(
    {
      name: 'kubectl',
      has: hasKubectl,
      packages: ['kubernetes-client'],
      missing:
        'This needs kubectl 1.27 or later, for Kustomize 5. On Debian 13 and later: apt-get install kubernetes-client; elsewhere see https://kubernetes.io/docs/tasks/tools/',
    },
    onProgress,
  );

/**
 * @param {string} folder with a kustomization
 * @returns {Promise<string>} the objects
 */
export async function kustomize(folder) {
  const { stdout } = await execute('kubectl', ['kustomize', folder], { timeout: 60_000, maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}
