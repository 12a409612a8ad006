import type { ConfirmChannel, Options } from 'amqplib';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import { HEADER } from '@app/amqp/messages/headers';
import { patternsOf } from '@app/rabbitmq/server/handler-check';
import { DROPPED_HEADERS } from '@app/rabbitmq/settle/republication';
import { againQueue, LANES } from '@app/rabbitmq/topology/topology';
import { keptPart, type DeadLetter } from './dead-letter';
import { DeadLetterError } from './errors';
import type { OpenedQueue } from './opened-queue';

/** Trusted broker accounts. */
export interface Accounts {
  /** Account of this connection. The broker refuses any other `user_id`. */
  own: string;
  /** Accounts of the services, which may name any tenant. Includes the own account, because services without their own account share it. */
  services: ReadonlySet<string>;
}

/** Sets the account with whose rights a dead letter of unknown origin is replayed. All others keep their publisher. */
export const withAccount = (letter: DeadLetter, as: string | undefined): DeadLetter =>
  letter.origin === 'unknown' && as !== undefined ? { ...letter, account: as } : letter;

/** The reason why a dead letter cannot be replayed, as far as its content shows; undefined when it can. */
export function replayObstacle(letter: DeadLetter, { services }: Accounts): string | undefined {
  const { account, from, message, operation, origin, stubOf } = letter;
  if (stubOf) {
    const kept = keptPart(letter);
    const why = kept
      ? `only ${kept} were kept (SHA-256 ${stubOf.sha256 ?? 'unknown'})`
      : 'its body or one of its headers cannot be read, as its reason says';
    return `${why}: its publisher must publish it again`;
  }
  if (origin === 'unknown' && account === undefined) {
    return 'its origin is unknown: inspect it with show, and choose the account whose rights it gets with --as ACCOUNT';
  }
  if (operation === undefined) return 'its operation is unknown';
  if (!patternsOf(from.service).includes(operation)) return 'its operation does not belong to this service';
  // Otherwise a publisher with forged headers would reach operations that only services may publish.
  if (origin === 'unknown' && !services.has(account!) && !isOpenCommand(operation)) {
    return 'only services may publish its operation: name the account of the service with --as ACCOUNT';
  }
  const { properties } = message;
  const deadline: unknown = properties.headers?.[HEADER.deadline];
  // After the deadline nothing may be executed any more: the consumer would drop the message.
  if (properties.replyTo !== undefined && typeof deadline === 'number' && deadline < Date.now()) {
    return 'its caller waited, and relies on nothing being executed after the deadline';
  }
  return undefined;
}

const isOpenCommand = (operation: string) =>
  OPEN_MESSAGES.some(({ kind, pattern }) => kind === 'command' && pattern === operation);

const OF_COMMANDS: readonly string[] = ['calls', ...LANES];

/**
 * Properties of the original message, for a first attempt. `user_id` is that of this tool, because the broker checks it against the publishing
 * account. A header names the original publisher, so that a replay has no more rights than the publisher. CC and BCC, which route copies, and
 * all headers of queues and services about the failure are left out.
 */
function replayProperties(letter: DeadLetter, { own }: Accounts): Options.Publish {
  const { account, correlationId, exchange, operation } = letter;
  const { properties } = letter.message;
  const headers: Record<string, unknown> = { ...properties.headers };
  for (const name of DROPPED_HEADERS) delete headers[name];
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
      [HEADER.routingKey]: operation,
      [HEADER.lane]: exchange !== undefined && OF_COMMANDS.includes(exchange) ? exchange : LANES[0],
      ...(account !== undefined && { [HEADER.originUser]: account }),
      ...(correlationId !== undefined && { [HEADER.correlationId]: correlationId }),
    },
  };
}

/**
 * Publishes a dead letter to its service through the exchange `retry`, because only there services trust our headers. The dead letter may be
 * removed once the broker has confirmed that another queue has it.
 *
 * @returns undefined, or the reason why it must stay
 * @throws when the channel ended or was given up: the dead letter stays, and may be in the other queue too
 */
export async function replay(queue: OpenedQueue, letter: DeadLetter, accounts: Accounts): Promise<string | undefined> {
  return replayObstacle(letter, accounts) ?? (await publishAgain(queue, letter, accounts));
}

async function publishAgain(queue: OpenedQueue, letter: DeadLetter, accounts: Accounts): Promise<string | undefined> {
  const { channel, failed, bounds } = queue;
  let returned = false;
  const onReturn = () => (returned = true);
  channel.once('return', onReturn);
  // The broker reads nothing more of a connection that publishes while it is short of memory or disk, so not even the channel can be closed.
  const timer = setTimeout(() => {
    const time = `${bounds.answerMs / 1000} s`;
    const doubt =
      'it may be short of memory or disk, or the queue has no leader. The letter stays, and may have been published as well';
    queue.giveUp(new DeadLetterError(`The broker has not confirmed ${letter.id} within ${time}: ${doubt}.`));
  }, bounds.answerMs);
  try {
    const nacked = await Promise.race([confirmation(channel, letter, accounts), failed]);
    // The broker sends a return before the confirm, and only one message is in flight.
    if (returned) return 'no queue is bound for its operation';
    return nacked;
  } finally {
    clearTimeout(timer);
    channel.off('return', onReturn);
  }
}

/** @returns the reason why the broker refused it; undefined when it was confirmed */
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
      resolve(`it cannot be encoded again: ${(error as Error).message}`);
    }
  });
}
