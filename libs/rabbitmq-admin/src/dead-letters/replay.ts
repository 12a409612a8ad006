import type { ConfirmChannel, Options } from 'amqplib';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import { HEADER } from '@app/amqp/headers';
import { patternsOf } from '@app/rabbitmq/server/handler-check';
import { OURS, DROPPED_HEADERS } from '@app/rabbitmq/settle/republication';
import { againQueue, LANES } from '@app/rabbitmq/topology/topology';
import type { DeadLetter } from './dead-letter';
import { DeadLetterError } from './errors';
import type { OpenedQueue } from './opened-queue';

const CONFIRM_TIMEOUT_MS = 30_000;

/** Accounts whose word counts. */
export interface Accounts {
  /** Of this connection. The broker refuses another one as `user_id`. */
  own: string;
  /** Of the services, which may name any tenant; with the own one, because services without an account of their own share it. */
  services: ReadonlySet<string>;
}

/** Names the account whose rights a letter of unknown origin gets; every other letter has its publisher's. */
export const withAccount = (letter: DeadLetter, as: string | undefined): DeadLetter =>
  letter.origin === 'unknown' && as !== undefined ? { ...letter, account: as } : letter;

/** Why a letter cannot be replayed, as far as it tells by itself. */
export function replayObstacle(letter: DeadLetter, { services }: Accounts): string | undefined {
  const { account, from, message, operation, origin, size, stubOf } = letter;
  if (stubOf) {
    return `only the first ${message.content.length} of its ${size} bytes were kept (SHA-256 ${stubOf.sha256 ?? 'unknown'}): its publisher has to publish it again`;
  }
  if (origin === 'unknown' && account === undefined) {
    return 'its origin is unknown: look at it with show, and name the account whose rights it gets with --as ACCOUNT';
  }
  if (operation === undefined) return 'nothing tells the operation that it was published for';
  if (!patternsOf(from.service).includes(operation)) return 'its operation is none of this service';
  // Else a publisher that has made it up would reach what only services may publish.
  if (origin === 'unknown' && !services.has(account!) && !isOpenCommand(operation)) {
    return 'only services publish its operation: name the account of the one that did with --as ACCOUNT';
  }
  const { properties } = message;
  const deadline: unknown = properties.headers?.[HEADER.deadline];
  // 504 is a promise that it will not happen any more, and the consumer would keep it by dropping the message.
  if (properties.replyTo !== undefined && typeof deadline === 'number' && deadline < Date.now()) {
    return 'its caller waited, and was promised that nothing happens after the deadline';
  }
  return undefined;
}

const isOpenCommand = (operation: string) =>
  OPEN_MESSAGES.some(({ kind, pattern }) => kind === 'command' && pattern === operation);

const NOT_ITS_OWN = [...DROPPED_HEADERS, ...Object.values(OURS), HEADER.lane, HEADER.deadSize, HEADER.deadHash];
const KNOWN_LANES: readonly string[] = ['calls', ...LANES];

/**
 * What the publisher had published, as if tried for the first time. `user_id` is that of this tool, because the broker checks it against
 * the account that publishes: a header tells whose message it is, so that a replay may do no more than its publisher. CC and BCC are left
 * out, which route copies by themselves, and everything that queues and services have written about the failure.
 */
export function replayProperties(letter: DeadLetter, { own }: Accounts): Options.Publish {
  const { account, correlationId, lane, operation } = letter;
  const { properties } = letter.message;
  const headers: Record<string, unknown> = { ...properties.headers };
  for (const name of NOT_ITS_OWN) delete headers[name];
  const { contentType, contentEncoding, type, messageId, appId, timestamp, priority } = properties as Options.Publish;
  const { replyTo } = properties as Options.Publish;
  return {
    persistent: true,
    contentType,
    contentEncoding,
    type,
    messageId,
    appId,
    userId: own,
    timestamp,
    priority,
    replyTo,
    headers: {
      ...headers,
      [OURS.routingKey]: operation,
      [HEADER.lane]: lane !== undefined && KNOWN_LANES.includes(lane) ? lane : LANES[0],
      ...(account !== undefined && { [OURS.originUser]: account }),
      ...(correlationId !== undefined && { [OURS.correlationId]: correlationId }),
    },
  };
}

/**
 * Publishes a letter to its service, by the way of retries: only there headers count that are not the publisher's. It may be removed once
 * the broker has confirmed that another queue has it.
 *
 * @returns undefined, or why it must stay
 * @throws when the channel ended: it stays, and may be in the other queue as well
 */
export async function replay(queue: OpenedQueue, letter: DeadLetter, accounts: Accounts): Promise<string | undefined> {
  return replayObstacle(letter, accounts) ?? (await publishAgain(queue, letter, accounts));
}

async function publishAgain(
  { channel, failed }: OpenedQueue,
  letter: DeadLetter,
  accounts: Accounts,
): Promise<string | undefined> {
  let returned = false;
  const onReturn = () => (returned = true);
  channel.once('return', onReturn);
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    const error = new DeadLetterError(`The broker has not confirmed ${letter.id} within ${CONFIRM_TIMEOUT_MS / 1000} s.`);
    timer = setTimeout(() => reject(error), CONFIRM_TIMEOUT_MS);
  });
  try {
    const nacked = await Promise.race([confirmation(channel, letter, accounts), failed, tooLong]);
    // The return of a message comes before its confirm, and only one is on its way.
    if (returned) return 'no queue is bound for its operation';
    return nacked;
  } finally {
    clearTimeout(timer);
    channel.off('return', onReturn);
  }
}

/** @returns why the broker refused it; undefined when it has it */
function confirmation(channel: ConfirmChannel, letter: DeadLetter, accounts: Accounts): Promise<string | undefined> {
  return new Promise((resolve) => {
    const onConfirm = (error: Error | null) => {
      if (!error) resolve(undefined);
      else if (error.message === 'message nacked') resolve('the queue of its operation is full');
    };
    try {
      const properties = { ...replayProperties(letter, accounts), mandatory: true };
      channel.publish('retry', againQueue(letter.from.service), letter.message.content, properties, onConfirm);
    } catch (error) {
      resolve(`it cannot be written again: ${(error as Error).message}`);
    }
  });
}
