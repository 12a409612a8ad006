import { startContainerRabbit } from './container.mjs';
import { startNativeRabbit } from './native.mjs';
import { canInstall } from '../../programs/packages.mjs';
import { CLUSTER_NEEDS_PROGRAM, HOW_TO_GET_RABBIT, dockerAnswers, findRabbit, installRabbit } from './program.mjs';

/**
 * @typedef {object} RabbitOptions
 * @property {string} directory an existing one for data and log; started again with the same, it has the same data
 * @property {string} password of the only user, who may do everything
 * @property {string} [user]
 * @property {boolean} [management] the HTTP API
 * @property {boolean} [disposable] whether its data will never be needed again: then it need not be closed in order
 * @property {string} [tls] a directory with ca.pem, cert.pem and key.pem: only TLS, and only with a certificate of that authority
 * @property {{ amqp?: number, management?: number }} [ports] taken when free
 * @property {Member} [member] absent: a node of its own. Only for the program on this machine, not for a container.
 * @property {() => void} [onDeath] called when it goes by itself
 * @property {AbortSignal} [abort] ends a start that is under way
 * @property {(what: string) => void} [onProgress] called before something that takes long
 */

// Erlang keeps certificates in memory for up to two minutes, also replaced ones.
const FORGET_CERTIFICATES = 'spawn(fun Again() -> ssl:clear_pem_cache(), timer:sleep(200), Again() end).';

/**
 * A node of a cluster.
 * @typedef {object} Member
 * @property {string} node its name, such as rabbit1@localhost
 * @property {string[]} peers the names of all nodes of the new cluster
 * @property {number} [tickSeconds] seconds until a silent node counts as lost: 60 by default
 * @property {number} distributionPort where other nodes reach it
 * @property {number} epmdPort of a port mapper that is already running
 */

/** @typedef {RabbitOptions & { user: string, management: boolean }} CompleteOptions */

/**
 * Starts a RabbitMQ of our own: the program on this machine, else a container, else after installing the program.
 * The result has, beside addresses, `control(program, ...args)`: the output of rabbitmqctl and its sister programs for this node.
 * @param {RabbitOptions} options
 */
export async function startRabbit({ user = 'collaboration', management = false, onProgress = () => {}, ...rest }) {
  const options = { user, management, ...rest };
  const started = await startOneOf(options, onProgress);
  if (rest.tls) await started.control('rabbitmqctl', 'eval', FORGET_CERTIFICATES);
  /** @param {string} scheme @param {number} port */
  const origin = (scheme, port) =>
    rest.tls
      ? `${scheme}s://${user}:${options.password}@localhost:${port}`
      : `${scheme}://${user}:${options.password}@127.0.0.1:${port}`;
  return {
    server: started.server,
    control: started.control,
    port: started.port,
    url: origin('amqp', started.port),
    managementPort: started.managementPort,
    managementUrl: started.managementPort ? origin('http', started.managementPort) : undefined,
  };
}

/** @param {CompleteOptions} options @param {(what: string) => void} onProgress */
async function startOneOf(options, onProgress) {
  const programs = findRabbit();
  if (programs) return startNativeRabbit(options, programs);
  if (options.member) throw new Error(CLUSTER_NEEDS_PROGRAM);
  if (await dockerAnswers()) return startContainerRabbit(options, onProgress);
  if (!canInstall()) throw new Error(HOW_TO_GET_RABBIT);
  onProgress('installing RabbitMQ with apt-get (once)');
  await Promise.race([installRabbit(), abortionOf(options.abort)]);
  const installed = findRabbit();
  if (!installed) throw new Error(HOW_TO_GET_RABBIT);
  return startNativeRabbit(options, installed);
}

// The installation goes on without us: half an installation would have to be repaired by hand.
/** @param {AbortSignal | undefined} signal */
function abortionOf(signal) {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('stopped while installing RabbitMQ')), { once: true });
  });
}
