import type { Channel, ChannelModel } from 'amqplib';
import { Backoff } from '@app/amqp/connection/backoff';
import { BrokerNodes, type BrokerNode } from '@app/amqp/connection/broker-nodes';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { isNodeAway } from '@app/amqp/connection/check-topology';
import { destroySocket, isClosed, NoConnection, openConnection } from '@app/amqp/connection/open-connection';
import { EARLIER_LANE_ZERO, REMOVED_BINDINGS, SIGN_OF_UPGRADE } from './earlier-topology';
import { exists, finishUpgrade, type Answered } from './finish-upgrade';
import { BINDINGS, EXCHANGES, LANES, QUEUES, type BindingDeclaration, type QueueDeclaration } from './topology';
import { within } from '@app/runtime/within';
import type { TlsFiles } from '@app/runtime/settings/tls-files';

const PRECONDITION_FAILED = 406;
const CLOSE_TIMEOUT_MS = 2000;
/** The node of the connection may wait for another one that is away. */
const STEP_TIMEOUT_MS = 10_000;
/** Errors of a broker that is still starting. Other errors, such as a wrong password, are not retried: waiting does not help. */
const NOT_UP_YET =
  /ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|not resolved in time|Socket closed abruptly|closed the connection while/;

/** The broker did not answer in time, or closed the connection: another node may answer. */
class NotAnswered extends Error {}

export interface DeclareOptions {
  /** Files for `amqps:`. */
  tlsFiles?: TlsFiles;
  /** How long to wait for a broker that is not up yet or does not answer, in milliseconds. Default 0. */
  waitMs?: number;
  /** Longest time for one declaration at one node, in milliseconds. Default 10,000. */
  stepMs?: number;
  /** No process of a version without lanes runs any more: remove the queues and bindings that only those use. Default false. */
  upgraded?: boolean;
  /** Called once when it begins to wait. */
  onWait?: (reason: string) => void;
  /** Called with the queues that exist on a broker node that is away. They are not compared with the topology. */
  onAway?: (queues: readonly string[]) => void;
}

/**
 * Declares every exchange, queue and binding of the topology, at any node. Existing ones do not change. No particular node is needed: a queue whose
 * only node is away stays as it is.
 *
 * @param url of an account with full rights on the virtual host
 * @returns with `upgraded` the earlier queues that are not empty yet, else an empty list
 * @throws Error that names the queue or exchange that exists with other arguments, or says for each node why there is no connection. The text
 *   never contains the URL
 */
export async function declareTopology(
  url: string,
  {
    tlsFiles,
    waitMs = 0,
    stepMs = STEP_TIMEOUT_MS,
    upgraded = false,
    onWait = () => undefined,
    onAway = () => undefined,
  }: DeclareOptions = {},
): Promise<string[]> {
  const nodes = new BrokerNodes(parseBrokerUrl(url).addresses);
  const until = performance.now() + waitMs;
  const backoff = new Backoff();
  for (let attempt = 0; ; attempt++) {
    let node: BrokerNode | undefined;
    try {
      const model = await openConnection({ url, tlsFiles, name: 'topology' }, undefined, nodes, (tried) => (node = tried));
      return await declareOver(model, String(node?.label), { stepMs, upgraded, onAway });
    } catch (error) {
      if (performance.now() > until || !mayPass(error)) throw error;
      if (error instanceof NotAnswered && node) nodes.failed(node);
      if (attempt === 0) onWait((error as Error).message);
      await backoff.wait(AbortSignal.timeout(Math.max(1, Math.ceil(until - performance.now()))));
    }
  }
}

/** Whether it may succeed later, or at another node. */
function mayPass(error: unknown): boolean {
  if (error instanceof NoConnection) return error.failures.every(({ error: { message } }) => NOT_UP_YET.test(message));
  return error instanceof NotAnswered;
}

type Attempt = Required<Pick<DeclareOptions, 'stepMs' | 'upgraded' | 'onAway'>>;

/** @param node for messages */
async function declareOver(model: ChannelModel, node: string, { stepMs, upgraded, onAway }: Attempt): Promise<string[]> {
  const answered = answeredWithin(stepMs);
  try {
    const channel = await answered('the opening of a channel', model.createChannel());
    channel.on('error', () => undefined);
    const upgrading = await answered(`the check of queue ${SIGN_OF_UPGRADE}`, exists(model, SIGN_OF_UPGRADE));
    const bindings = [
      ...BINDINGS.filter(({ exchange }) => !upgrading || exchange !== LANES[0]),
      ...(upgrading ? EARLIER_LANE_ZERO : []),
    ];
    await declareOn(channel, bindings, answered);
    const away = await Promise.all(QUEUES.filter(isOnOneNode).map((queue) => declareOnOneNode(model, queue, bindings, answered)));
    if (away.some(Boolean)) onAway(away.filter((name) => name !== undefined));
    const left = upgraded ? await finishUpgrade(model, answered) : [];
    await within(CLOSE_TIMEOUT_MS, model.close());
    return left;
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof NotAnswered || isClosed(model)) throw new NotAnswered(`${node}: ${message}`, { cause: error });
    throw error;
  } finally {
    destroySocket(model);
  }
}

const answeredWithin =
  (stepMs: number): Answered =>
  async (what, answer) => {
    if (!(await within(stepMs, answer))) throw new NotAnswered(`${what} took over ${stepMs / 1000} s`);
    return answer;
  };

const isOnOneNode = ({ arguments: { 'x-queue-type': type } }: QueueDeclaration) => type === 'classic';

/** @param bindings those of queues on one node are left out: see {@link declareOnOneNode} */
async function declareOn(channel: Channel, bindings: readonly BindingDeclaration[], answered: Answered): Promise<void> {
  for (const { name, type } of EXCHANGES) {
    await explain(`exchange ${name}`, answered, channel.assertExchange(name, type, { durable: true }));
  }
  const queues = QUEUES.filter((queue) => !isOnOneNode(queue));
  for (const queue of queues) await declareQueue(channel, queue, answered);
  for (const queue of queues) await bindQueue(channel, queue, bindings, answered);
  for (const { queue, exchange, routingKey } of REMOVED_BINDINGS)
    await answered(`the unbinding of queue ${queue}`, channel.unbindQueue(queue, exchange, routingKey));
}

/**
 * Declares and binds a queue that is on one node. It has a channel of its own, which the broker closes when the node does not run.
 *
 * @returns the name of the queue when its node is away or does not answer, else undefined
 */
async function declareOnOneNode(
  model: ChannelModel,
  queue: QueueDeclaration,
  bindings: readonly BindingDeclaration[],
  answered: Answered,
): Promise<string | undefined> {
  const channel = await answered('the opening of a channel', model.createChannel());
  channel.on('error', () => undefined);
  try {
    await declareQueue(channel, queue, answered);
    await bindQueue(channel, queue, bindings, answered);
    return undefined;
  } catch (error) {
    if (isNodeAway(error) || (error instanceof NotAnswered && !isClosed(model))) return queue.name;
    throw error;
  }
}

const declareQueue = (channel: Channel, queue: QueueDeclaration, answered: Answered): Promise<void> =>
  explain(`queue ${queue.name}`, answered, channel.assertQueue(queue.name, { durable: true, arguments: queue.arguments }));

async function bindQueue(
  channel: Channel,
  { name }: QueueDeclaration,
  bindings: readonly BindingDeclaration[],
  answered: Answered,
): Promise<void> {
  for (const { queue, exchange, routingKey } of bindings)
    if (queue === name) await answered(`the binding of queue ${name}`, channel.bindQueue(name, exchange, routingKey));
}

async function explain(what: string, answered: Answered, declared: Promise<unknown>): Promise<void> {
  try {
    await answered(`the declaration of ${what}`, declared);
  } catch (error) {
    if ((error as { code?: unknown }).code !== PRECONDITION_FAILED) throw error;
    throw new Error(`the ${what} exists with other settings, and they cannot be changed: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
