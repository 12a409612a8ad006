import { execFile } from 'node:child_process';
import { readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { install, isExecutable, pathDirectories } from '../../programs/packages.mjs';

const HOMEBREW = ['/opt/homebrew', '/usr/local', '/home/linuxbrew/.linuxbrew'];

/**
 * The RabbitMQ of this machine.
 * @returns {{ server: string, path: string } | undefined} its start script and the PATH they need for Erlang
 */
export function findRabbit() {
  const unpacked = ['/opt', '/usr/local', '/usr/lib/rabbitmq/lib'].flatMap((base) => {
    try {
      return readdirSync(base)
        .filter((name) => /^rabbitmq/i.test(name))
        .map((name) => join(base, name, 'sbin'));
    } catch {
      return [];
    }
  });
  const directories = [
    // Debian's and Red Hat's own directory first: their /usr/sbin/rabbitmq-server is a wrapper that switches user.
    '/usr/lib/rabbitmq/bin',
    ...HOMEBREW.map((base) => join(base, 'opt/rabbitmq/sbin')),
    ...unpacked,
    ...pathDirectories().filter((directory) => !['/usr/sbin', '/sbin'].includes(directory)),
  ];
  const home = directories.find((directory) => isExecutable(join(directory, 'rabbitmq-server')));
  if (!home) return undefined;
  const path = erlangDirectories().concat(pathDirectories());
  if (!path.some((directory) => isExecutable(join(directory, 'erl')))) return undefined;
  return { server: join(home, 'rabbitmq-server'), path: path.join(delimiter) };
}

// epmd lies beside the real `erl`, which need not be where PATH finds the link to it.
function erlangDirectories() {
  const candidates = [...pathDirectories(), ...HOMEBREW.map((base) => join(base, 'opt/erlang/bin')), '/usr/lib/erlang/bin'];
  return candidates
    .filter((directory) => isExecutable(join(directory, 'erl')))
    .map((directory) => dirname(realpathSync(join(directory, 'erl'))));
}

/** @returns {Promise<boolean>} whether a Docker engine answers */
export async function dockerAnswers() {
  return promisify(execFile)('docker', ['info', '--format', '{{.ServerVersion}}'], { timeout: 10_000 }).then(
    ({ stdout }) => /\d/.test(stdout),
    () => false,
  );
}

export const installRabbit = () =>
  install('RabbitMQ', ['rabbitmq-server'], ['rabbitmq-server.service', 'epmd.service', 'epmd.socket']);

/** The message for a machine without a RabbitMQ that we can use. */
export const HOW_TO_GET_RABBIT = [
  'RabbitMQ is needed and was not found. Any one of these will do:',
  '  Debian, Ubuntu   sudo apt-get install rabbitmq-server',
  '  Fedora, RHEL     sudo dnf install rabbitmq-server',
  '  macOS            brew install rabbitmq',
  '  anywhere         start Docker, or set AMQP_URL to a RabbitMQ 3.10 or later that you have',
].join('\n');

/** The message for a cluster of brokers on such a machine: its nodes have to reach each other. */
export const CLUSTER_NEEDS_PROGRAM =
  'A cluster of brokers needs RabbitMQ as a program of this machine; on Debian: apt-get install rabbitmq-server';
