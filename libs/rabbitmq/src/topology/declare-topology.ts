import type { Channel } from 'amqplib';
import { Backoff } from '@app/amqp/backoff';
import { destroySocket, openConnection, parseBrokerUrl } from '@app/amqp/open-connection';
import { EARLIER_LANE_ZERO, REMOVED_BINDINGS, SIGN_OF_UPGRADE } from './earlier-topology';
import { exists, finishUpgrade } from './finish-upgrade';
import { BINDINGS, EXCHANGES, LANES, QUEUES } from './topology';
import { within } from '@app/amqp/within';
import type { TlsFiles } from '@app/runtime/tls-files';

const PRECONDITION_FAILED = 406;
const CLOSE_TIMEOUT_MS = 2000;
/** Errors of a broker that is still starting. Other errors, such as a wrong password, are not retried: waiting does not help. */
const NOT_UP_YET =
  /ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|Socket closed abruptly|closed the connection while/;

export interface DeclareOptions {
  /** Files for `amqps:`. */
  tlsFiles?: TlsFiles;
  /** How long to wait for a broker that is not up yet, in milliseconds. Default 0. */
  waitMs?: number;
  /** No process of a version without lanes runs any more: remove the queues and bindings that only those use. Default false. */
  upgraded?: boolean;
}

/**
 * Declares every exchange, queue and binding of the topology. Existing ones do not change.
 *
 * @param url of an account with full rights on the virtual host
 * @returns with `upgraded` the earlier queues that are not empty yet, else an empty list
 * @throws Error that names the queue or exchange that exists with other arguments, or says why there is no connection. The text never
 *   contains the URL
 */
export async function declareTopology(
  url: string,
  { tlsFiles, waitMs = 0, upgraded = false }: DeclareOptions = {},
): Promise<string[]> {
  parseBrokerUrl(url);
  const model = await connectWithin(waitMs, () => openConnection({ url, tlsFiles, name: 'topology' }));
  try {
    const channel = await model.createChannel();
    channel.on('error', () => undefined);
    await declareOn(channel, await exists(model, SIGN_OF_UPGRADE));
    const left = upgraded ? await finishUpgrade(model) : [];
    await within(CLOSE_TIMEOUT_MS, model.close());
    return left;
  } finally {
    destroySocket(model);
  }
}

async function connectWithin<T>(waitMs: number, open: () => Promise<T>): Promise<T> {
  const until = performance.now() + waitMs;
  const backoff = new Backoff();
  for (;;) {
    try {
      return await open();
    } catch (error) {
      // A host name with several addresses fails with an AggregateError.
      const causes = error instanceof AggregateError ? error.errors : [error];
      const notUpYet = causes.some((cause) => NOT_UP_YET.test(String((cause as Error).message)));
      if (!notUpYet || performance.now() > until) throw causes[0];
      await backoff.wait(AbortSignal.timeout(Math.max(1, Math.ceil(until - performance.now()))));
    }
  }
}

/** @param upgrading whether processes of versions without lanes may run: lane 0 keeps their bindings until the upgrade is finished */
async function declareOn(channel: Channel, upgrading: boolean): Promise<void> {
  for (const { name, type } of EXCHANGES) {
    await explain(`exchange ${name}`, channel.assertExchange(name, type, { durable: true }));
  }
  for (const queue of QUEUES) {
    await explain(`queue ${queue.name}`, channel.assertQueue(queue.name, { durable: true, arguments: queue.arguments }));
  }
  const bindings = BINDINGS.filter(({ exchange }) => !upgrading || exchange !== LANES[0]);
  for (const { queue, exchange, routingKey } of [...bindings, ...(upgrading ? EARLIER_LANE_ZERO : [])])
    await channel.bindQueue(queue, exchange, routingKey);
  for (const { queue, exchange, routingKey } of REMOVED_BINDINGS) await channel.unbindQueue(queue, exchange, routingKey);
}

async function explain(what: string, declared: Promise<unknown>): Promise<void> {
  try {
    await declared;
  } catch (error) {
    if ((error as { code?: unknown }).code !== PRECONDITION_FAILED) throw error;
    throw new Error(`the ${what} exists with other settings, and they cannot be changed: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
