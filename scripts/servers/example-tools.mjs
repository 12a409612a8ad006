import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { canInstall, install } from './packages.mjs';

/** @param {string} command @param {string[]} args */
const runs = (command, args) =>
  promisify(execFile)(command, args, { timeout: 30_000 }).then(
    () => true,
    () => false,
  );

/**
 * The tools of the examples in other languages: Python with pika, and amqp-tools. Installed when they are missing and can be.
 * @param {(what: string) => void} onProgress called before something that takes long
 * @returns {Promise<{ python?: string, shell: boolean, missing: string[] }>} the Python to use; what could not be had, for people
 */
export async function exampleTools(onProgress) {
  let found = await look();
  if (found.missing.length > 0 && canInstall()) {
    onProgress('installing what the examples need with apt-get (once)');
    await install('python3-pika and amqp-tools', ['python3-pika', 'amqp-tools']);
    found = await look();
  }
  return found;
}

async function look() {
  let python;
  // A Python of one's own, in front in PATH, does not have Debian's packages.
  for (const candidate of ['python3', '/usr/bin/python3']) {
    if (!python && (await runs(candidate, ['-c', 'import pika']))) python = candidate;
  }
  const shell = (await runs('amqp-publish', ['--help'])) && (await runs('amqp-consume', ['--help']));
  return {
    python,
    shell,
    missing: [...(python ? [] : ['python3 with pika']), ...(shell ? [] : ['amqp-tools (amqp-publish, amqp-consume)'])],
  };
}
