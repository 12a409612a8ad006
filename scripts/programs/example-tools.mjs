import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { canInstall, install } from './packages.mjs';

/** Libraries of Debian for Go and Java. */
const GO_LIBRARIES = { GOPATH: '/usr/share/gocode', GO111MODULE: 'off' };
const JACKSON = ['core', 'annotations', 'databind'].map((part) => `jackson-${part}`);
const JAVA_LIBRARIES = ['amqp-client', 'slf4j-api', 'slf4j-nop', ...JACKSON].map((name) => `/usr/share/java/${name}.jar`);

/** @param {string} command @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
const runs = (command, args, env = process.env) =>
  promisify(execFile)(command, args, { timeout: 30_000, env }).then(
    () => true,
    () => false,
  );

/**
 * @typedef {object} ExampleTools
 * @property {string} [python] to use
 * @property {boolean} shell
 * @property {NodeJS.ProcessEnv} [go] the variables with which it finds its library
 * @property {string} [java] its class path
 * @property {string[]} missing what could not be had, for people
 * @property {string[]} unused the same, of languages that are tried only where they are: hundreds of megabytes belong to them
 */

/**
 * The tools of the examples in other languages. Python with pika, and what the shell needs, are installed when they are missing and can be.
 * @param {(what: string) => void} onProgress called before something that takes long
 * @returns {Promise<ExampleTools>}
 */
export async function exampleTools(onProgress) {
  let found = await look();
  if (found.missing.length > 0 && canInstall()) {
    onProgress('installing what the examples need with apt-get (once)');
    await install('python3-pika, amqp-tools, curl and jq', ['python3-pika', 'amqp-tools', 'curl', 'jq']);
    found = await look();
  }
  return found;
}

/** @returns {Promise<ExampleTools>} */
async function look() {
  let python;
  // A Python of one's own, in front in PATH, does not have Debian's packages.
  for (const candidate of ['python3', '/usr/bin/python3']) {
    if (!python && (await runs(candidate, ['-c', 'import pika']))) python = candidate;
  }
  const shell = (
    await Promise.all([
      ...['amqp-publish', 'amqp-consume'].map((command) => runs(command, ['--help'])),
      ...['curl', 'jq'].map((command) => runs(command, ['--version'])),
    ])
  ).every(Boolean);
  const go = (await runs('go', ['list', 'github.com/rabbitmq/amqp091-go'], { ...process.env, ...GO_LIBRARIES }))
    ? GO_LIBRARIES
    : undefined;
  const java =
    JAVA_LIBRARIES.every((library) => existsSync(library)) && (await runs('javac', ['-version']))
      ? JAVA_LIBRARIES.join(':')
      : undefined;
  return {
    python,
    shell,
    go,
    java,
    missing: [
      ...(python ? [] : ['python3 with pika']),
      ...(shell ? [] : ['amqp-tools (amqp-publish, amqp-consume), curl and jq']),
    ],
    unused: [
      ...(go ? [] : ['golang-go golang-github-rabbitmq-amqp091-go-dev']),
      ...(java ? [] : ['default-jdk-headless librabbitmq-client-java libjackson2-databind-java']),
    ],
  };
}
