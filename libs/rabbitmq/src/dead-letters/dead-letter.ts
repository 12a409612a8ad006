import { createHash } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { ERROR_STATUSES } from '@app/contracts/error';
import { HEADER } from '@app/amqp/headers';

/** What became of a letter that the broker gave up by itself, by the broker's word for it. */
const BROKER_STATUSES = {
  delivery_limit: { status: 'CRASHED', reason: 'crashed its consumer, until the broker gave it up' },
  expired: { status: 'EXPIRED', reason: 'expired in its queue: it was published with an expiration' },
  rejected: { status: 'REJECTED', reason: 'was rejected by its consumer' },
  maxlen: { status: 'OVERFLOWED', reason: 'did not fit into its queue any more' },
} as const;

const UNEXPLAINED = { status: 'UNKNOWN', reason: 'came here without a reason' } as const;

/** Every status that a dead letter may have: the error's, or what the broker says. */
export const LETTER_STATUSES: readonly string[] = [
  ...ERROR_STATUSES,
  ...Object.values(BROKER_STATUSES).map(({ status }) => status),
  UNEXPLAINED.status,
];

/** What can be said of a dead letter without its body. Its strings are safe to print. */
export interface LetterSummary {
  queue: string;
  /** Place in the queue, 1 at its head. */
  position: number;
  /** message_id, or a hash of what does not change for a letter without one. */
  id: string;
  /** Routing key it was published with; absent when nothing tells. */
  operation?: string;
  status: string;
  reason: string;
  apiKey?: string;
  /** What the publisher calls itself, and its broker account. */
  publisher?: string;
  attempts: number;
  firstFailedAt?: Date;
  /** Bytes of the body. */
  size: number;
}

export interface DeadLetter extends LetterSummary {
  message: ConsumeMessage;
  /** Broker account that published it, as the broker or a service vouches for it. */
  account?: string;
  /** Of the caller who waited for it, if anybody did. */
  correlationId?: string;
  /** Whether a service put it here; else it is as its publisher wrote it, with what the broker added. */
  republished: boolean;
}

/** One line of it cannot move the cursor, ring the bell or pretend to be another: terminals obey control characters. */
export const printable = (text: string): string =>
  // eslint-disable-next-line no-control-regex -- control characters are what it replaces
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

/** Reads what a dead letter tells of itself. Nothing in it is trusted. */
export function readDeadLetter(message: ConsumeMessage, queue: string, position: number): DeadLetter {
  const { properties, content } = message;
  const headers: Record<string, unknown> = properties.headers ?? {};
  const death = lastDeath(headers);
  const history = death ? brokerHistory(headers, death) : serviceHistory(headers);
  const { appId, userId } = properties as { appId: unknown; userId: unknown };
  const correlationId: unknown = death?.exchange === 'commands' ? properties.correlationId : headers[HEADER.correlationId];
  const account = history.account ?? text(userId);
  const publisher = [text(appId), account && `(${account})`].filter(Boolean).join(' ');
  const apiKey = text(headers[HEADER.apiKey]);
  const { operation, status, reason, attempts, firstFailedAt } = history;
  return {
    queue,
    position,
    id: text(properties.messageId) ?? contentId(content, operation, apiKey, firstFailedAt),
    ...(operation !== undefined && { operation }),
    status,
    reason,
    ...(apiKey !== undefined && { apiKey }),
    ...(publisher && { publisher }),
    attempts,
    ...(firstFailedAt && { firstFailedAt }),
    size: content.length,
    message,
    ...(account !== undefined && { account }),
    ...(typeof correlationId === 'string' && { correlationId }),
    republished: death === undefined && operation !== undefined,
  };
}

type History = Pick<LetterSummary, 'operation' | 'status' | 'reason' | 'attempts' | 'firstFailedAt'> & { account?: string };

/** A service has put it here: the headers are the service's own, because it replaces those that it gets. */
function serviceHistory(headers: Record<string, unknown>): History {
  return {
    ...triesOf(headers),
    status: text(headers[HEADER.deadStatus]) ?? UNEXPLAINED.status,
    reason: text(headers[HEADER.deadReason]) ?? UNEXPLAINED.reason,
  };
}

/** The headers of a service count only when the letter came out of a retry queue: else the publisher has made them up. */
function brokerHistory(headers: Record<string, unknown>, death: Death): History {
  const tries = death.exchange === 'retry' ? triesOf(headers) : { attempts: 1, operation: text(death.routingKey) };
  const cause = Object.hasOwn(BROKER_STATUSES, death.reason)
    ? BROKER_STATUSES[death.reason as keyof typeof BROKER_STATUSES]
    : UNEXPLAINED;
  return { firstFailedAt: death.at, ...tries, ...cause };
}

function triesOf(headers: Record<string, unknown>): Omit<History, 'status' | 'reason'> {
  const attempts = headers[HEADER.attempt];
  const at = headers[HEADER.firstFailedAt];
  const firstFailedAt = dateOf(at);
  return {
    operation: text(headers[HEADER.routingKey]),
    account: text(headers[HEADER.originUser]),
    attempts: Number.isSafeInteger(attempts) ? (attempts as number) : 1,
    ...(firstFailedAt && { firstFailedAt }),
  };
}

interface Death {
  reason: string;
  exchange: unknown;
  routingKey: unknown;
  at?: Date;
}

/** The broker's last entry stands first. A service removes the whole header from what it puts here. */
function lastDeath(headers: Record<string, unknown>): Death | undefined {
  const deaths = headers['x-death'];
  const last: unknown = Array.isArray(deaths) ? deaths[0] : undefined;
  if (typeof last !== 'object' || last === null) return undefined;
  const { reason, exchange, time, 'routing-keys': keys } = last as Record<string, unknown>;
  const seconds = (time as { value?: unknown } | undefined)?.value;
  const at = typeof seconds === 'number' ? dateOf(seconds * 1000) : undefined;
  const routingKey: unknown = Array.isArray(keys) ? keys[0] : undefined;
  return { reason: String(reason), exchange, routingKey, ...(at && { at }) };
}

/** Epoch milliseconds that a Date can hold. */
function dateOf(milliseconds: unknown): Date | undefined {
  const date = new Date(typeof milliseconds === 'number' ? milliseconds : NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? printable(value) : undefined);

/** The same at every look, and different for two letters unless they are the same in everything. */
function contentId(content: Buffer, ...facts: unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(facts)).update(content);
  return `sha256:${hash.digest('hex').slice(0, 16)}`;
}
