import type { Socket } from 'node:net';
import { connect, type ChannelModel, type Options } from 'amqplib';
import { tlsOptions, type TlsFiles } from '@app/runtime/tls-files';
import { internalsOfConnection } from './amqplib-internals';
import { surviveHostileHeaders } from './hostile-headers';
import type { Observer } from './observer';

export interface ConnectionOptions {
  /** `amqp:` or `amqps:`, with credentials and virtual host. */
  url: string;
  /** Files for `amqps:`. They are read for each connection. */
  tlsFiles?: TlsFiles;
  /** Shown in the broker's list of connections. */
  name: string;
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Heartbeat in seconds. The broker sends a frame at least twice in this time. */
const HEARTBEAT_S = 10;

/** Seconds without a byte from the broker, after which the connection is given up. amqplib itself waits for two to three heartbeats. */
const MOST_SILENCE_S = 15;

/** Whether the connection ended while it was opened: then its close event came before a listener could be added. */
export const isClosed = (model: ChannelModel): boolean => internalsOfConnection(model).expectSocketClose;

/**
 * Destroys the socket, and ends all channels that are still open. amqplib ends only its own half of the socket, and it notices the loss of a
 * socket only by an error.
 */
export const destroySocket = (model: ChannelModel, reason = 'given up'): void =>
  void internalsOfConnection(model).stream.destroy(new Error(reason));

/**
 * Opens one AMQP connection.
 *
 * @param log gets a line for each message that cannot be decoded
 * @throws Error of the network, of the handshake, or of {@link parseBrokerUrl}; never with the URL in it
 */
export async function openConnection(
  { url, tlsFiles = {}, name }: ConnectionOptions,
  log: Observer['log'] = () => undefined,
): Promise<ChannelModel> {
  const address = parseBrokerUrl(url);
  const model = await connect(address, {
    // Otherwise a write may wait 40 ms: Nagle's algorithm waits for the peer's delayed acknowledgement.
    noDelay: true,
    keepAlive: true,
    timeout: CONNECT_TIMEOUT_MS,
    clientProperties: { connection_name: name },
    ...(address.protocol === 'amqps' && tlsOptions(tlsFiles, (msg) => log('warn', { msg, connection: name }))),
  });
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

/** @throws Error that does not quote the URL, because it contains a password */
export function parseBrokerUrl(url: string): Options.Connect & { username: string } {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed?.hostname || (parsed.protocol !== 'amqp:' && parsed.protocol !== 'amqps:')) {
    throw new Error('must be an amqp:// or amqps:// URL');
  }
  return {
    protocol: parsed.protocol.slice(0, -1),
    hostname: parsed.hostname.replace(/^\[|\]$/g, ''),
    ...(parsed.port && { port: Number(parsed.port) }),
    username: decodeURIComponent(parsed.username) || 'guest',
    password: decodeURIComponent(parsed.password) || 'guest',
    // amqplib decodes it.
    vhost: parsed.pathname.slice(1) || '%2F',
    heartbeat: HEARTBEAT_S,
  };
}
