import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { connect, type ChannelModel } from 'amqplib';
import { tlsOptions, type TlsFiles } from '@app/runtime/settings/tls-files';
import { internalsOfConnection } from '../amqplib-internals';
import { BrokerNodes, type BrokerNode, type Failure } from './broker-nodes';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { reasonOf } from './failures';
import { surviveHostileHeaders } from './hostile-headers';
import type { Observer } from './observer';

export interface ConnectionOptions {
  /** `amqp:` or `amqps:`, with credentials, one or more hosts separated by commas, and the virtual host. */
  url: string;
  /** Files for `amqps:`. They are read for each connection. */
  tlsFiles?: TlsFiles;
  /** Shown in the broker's list of connections. */
  name: string;
  /** Least time between two looks at the preferred node, in milliseconds; the most is three times this. Default 10,000. */
  moveEveryMs?: number;
  /** Number of the order of nodes. Default: one for all connections of the process, chosen at its start. */
  preference?: number;
  /** Whether the nodes are tried in the opposite order: for a connection that should not share a node with the others. Default false. */
  backwards?: boolean;
  /** Longest time without a confirm of a quorum queue before the node is left, in milliseconds. Default 8,000. */
  unconfirmedMs?: number;
}

/** Longest silence while a connection is opened. */
const CONNECT_TIMEOUT_MS = 10_000;

/** The same while there is another node to try: a host that drops packets must not delay the others. */
export const SHORT_CONNECT_TIMEOUT_MS = 2500;

/**
 * Heartbeat in seconds. Broker and process send a frame at least twice in this time. The broker gives up a process that is silent for two
 * heartbeats. RabbitMQ's documentation advises against less than 5 s.
 */
const HEARTBEAT_S = 5;

/**
 * Seconds without a byte from the broker, after which the connection is given up. A loaded broker must miss three frames for that. amqplib itself
 * waits for two to three heartbeats.
 */
const MOST_SILENCE_S = 8;

/** Whether the connection ended while it was opened: then its close event came before a listener could be added. */
export const isClosed = (model: ChannelModel): boolean => internalsOfConnection(model).expectSocketClose;

/** Whether the broker has said that it takes no messages: perhaps before a listener could be added. */
export const isBlocked = (model: ChannelModel): boolean => internalsOfConnection(model).blocked;

/**
 * Destroys the socket, and ends all channels that are still open. amqplib ends only its own half of the socket, and it notices the loss of a
 * socket only by an error.
 */
export const destroySocket = (model: ChannelModel, reason = 'given up'): void =>
  void internalsOfConnection(model).stream.destroy(new Error(reason));

/**
 * Destroys the socket like {@link destroySocket}, and with it what this machine has not sent yet: otherwise the system would go on sending that after
 * a stall of the network. TLS has no such end.
 */
export function resetSocket(model: ChannelModel, reason: string): void {
  const { stream } = internalsOfConnection(model);
  // Set by resetAndDestroy() too, which first waits for the end of what is written.
  if (!(stream instanceof TLSSocket)) (stream as Socket & { resetAndClosing?: boolean }).resetAndClosing = true;
  stream.destroy(new Error(reason));
}

/** No node could be connected to. */
export class NoConnection extends Error {
  constructor(readonly failures: readonly Failure[]) {
    const [{ error: first }] = failures;
    super(failures.length > 1 ? failures.map(({ label, error }) => `${label}: ${reasonOf(error)}`).join('; ') : reasonOf(first), {
      cause: first,
    });
  }
}

/**
 * Opens one AMQP connection, to the first node that can be used.
 *
 * @param log gets a line for each message that cannot be decoded
 * @param nodes chooses the order of the nodes, and remembers failures
 * @param onAttempt called before each attempt; the last node is the one of the connection
 * @throws NoConnection with an error of the network or of the handshake for each node; Error of {@link parseBrokerUrl}; never with the URL in it
 */
export async function openConnection(
  options: ConnectionOptions,
  log: Observer['log'] = () => undefined,
  nodes = new BrokerNodes(parseBrokerUrl(options.url).addresses, options),
  onAttempt: (node: BrokerNode) => void = () => undefined,
): Promise<ChannelModel> {
  const { nodes: candidates, failures } = await nodes.order();
  for (const [at, node] of candidates.entries()) {
    onAttempt(node);
    const timeoutMs = at < candidates.length - 1 ? SHORT_CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_MS;
    try {
      return await openAt(node, options, timeoutMs, log);
    } catch (error) {
      nodes.failed(node);
      failures.push({ label: node.label, error: error as Error });
    }
  }
  throw new NoConnection(failures);
}

/** Opens one AMQP connection to this node. @throws Error of the network or of the handshake */
export async function openAt(
  { host, ip, port }: BrokerNode,
  { url, tlsFiles = {}, name }: ConnectionOptions,
  timeoutMs: number,
  log: Observer['log'],
): Promise<ChannelModel> {
  const { protocol, username, password, vhost } = parseBrokerUrl(url);
  const model = await connect(
    { protocol, hostname: ip, port, username, password, vhost, heartbeat: HEARTBEAT_S },
    {
      // Otherwise a write may wait 40 ms: Nagle's algorithm waits for the peer's delayed acknowledgement.
      noDelay: true,
      keepAlive: true,
      timeout: timeoutMs,
      clientProperties: { connection_name: name },
      // The certificate is that of the host name.
      ...(!isIP(host) && { servername: host }),
      ...(protocol === 'amqps' && tlsOptions(tlsFiles, (msg) => log('warn', { msg, connection: name }))),
    },
  );
  surviveHostileHeaders(model, log);
  // An error event without a listener would end the process.
  model.on('error', () => undefined);
  if (isClosed(model)) throw new Error('The broker closed the connection while it opened.');
  endWhenSilent(model);
  writeTogether(internalsOfConnection(model).stream);
  return model;
}

/** Sends the writes of one turn of the event loop in one system call, instead of one for each frame. */
function writeTogether(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let corked = false;
  socket.write = (...args: unknown[]) => {
    if (!corked) {
      corked = true;
      socket.cork();
      process.nextTick(() => {
        corked = false;
        socket.uncork();
      });
    }
    return write(...args);
  };
}

/** Ends a silent connection. It counts checks and not time, because a process that was frozen has not listened meanwhile. */
function endWhenSilent(model: ChannelModel): void {
  const { stream } = internalsOfConnection(model);
  let heard = stream.bytesRead;
  let silence = 0;
  const timer = setInterval(() => {
    silence = stream.bytesRead === heard ? silence + 1 : 0;
    heard = stream.bytesRead;
    if (silence >= MOST_SILENCE_S) destroySocket(model, `no sign of life for ${MOST_SILENCE_S} s`);
  }, 1000).unref();
  stream.once('close', () => clearInterval(timer));
}
