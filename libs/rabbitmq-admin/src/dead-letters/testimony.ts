import type { ConsumeMessage } from 'amqplib';
import type { ServiceName } from '@app/contracts/message';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import { HEADER } from '@app/amqp/messages/headers';
import type { Kind, LetterQueue } from './letter-queue';
import { text } from './printable';

/**
 * The writer of the headers of a dead letter.
 *
 * - `service`: by its user_id, which the broker has checked, a service published it. Its headers can be trusted.
 * - `unknown`: dead letters of versions without lanes, whose services set no `user_id`, and commands that expired in their command queue.
 */
export type Origin = 'service' | 'unknown';

/** A fact that may be unproved. */
export type Claim = 'operation' | 'status' | 'reason' | 'attempts' | 'firstFailedAt';

/** All known facts of a dead letter, without its body and the free properties of its publisher. */
export interface Testimony {
  origin: Origin;
  /** Broker account of its publisher. Absent when the publisher set no `user_id`, or when the origin is unknown. */
  account?: string;
  operation?: string;
  status: string;
  reason: string;
  attempts?: number;
  firstFailedAt?: Date;
  /** Correlation id of the caller, if one waited. */
  correlationId?: string;
  /** Exchange that it was first published to. */
  exchange?: string;
  /** Size and hash of the whole body, when only its beginning was kept. */
  stubOf?: { bytes?: number; sha256?: string };
  /** Facts that any publisher may have written. */
  unproved: readonly Claim[];
}

const CRASHED = { status: 'CRASHED', reason: 'crashed its consumers too often' } as const;
const UNEXPLAINED = { status: 'UNKNOWN', reason: 'has no reason' } as const;

/** Statuses that are not errors of a service. */
export const OTHER_STATUSES: readonly string[] = [CRASHED.status, UNEXPLAINED.status];

/**
 * Derives the facts of a dead letter. `x-death` proves nothing: a publisher may forge it, and RabbitMQ adds its own entry to the forged ones.
 *
 * @param services broker accounts of the services: no other account can set these as `user_id`
 */
export function testimonyOf(message: ConsumeMessage, queue: LetterQueue, services: ReadonlySet<string>): Testimony {
  const userId: unknown = message.properties.userId;
  const byService = typeof userId === 'string' && services.has(userId);
  if (!byService) return ofUnknown(message, queue);
  // Services set this header on every dead letter that they publish.
  return HEADER.routingKey in headersOf(message.properties) ? ofService(message, queue.kind) : asPublished(message);
}

function ofService({ properties }: ConsumeMessage, kind: Kind): Testimony {
  const headers = headersOf(properties);
  return {
    origin: 'service',
    ...statedByHeaders(headers, kind),
    account: text(headers[HEADER.originUser]),
    correlationId: string(headers[HEADER.correlationId]),
    exchange: string(headers[HEADER.lane]),
    stubOf: stubOf(headers),
    unproved: [],
  };
}

/** A message that a service published, such as an event, and that the broker dead-lettered after too many deliveries. */
function asPublished({ properties }: ConsumeMessage): Testimony {
  return {
    origin: 'service',
    ...CRASHED,
    account: text(properties.userId),
    operation: text(properties.type),
    firstFailedAt: timeOfDeath(headersOf(properties)),
    correlationId: string(properties.correlationId),
    unproved: [],
  };
}

function ofUnknown({ properties }: ConsumeMessage, { kind, service }: LetterQueue): Testimony {
  const headers = headersOf(properties);
  const stated = statedByHeaders(headers, kind);
  const isSure = kind === 'crashed';
  return {
    origin: 'unknown',
    ...stated,
    operation: stated.operation ?? onlyCommandOf(service),
    firstFailedAt: stated.firstFailedAt ?? timeOfDeath(headers),
    correlationId: string(headers[HEADER.correlationId] ?? properties.correlationId),
    unproved: ['operation', ...(isSure ? [] : (['status', 'reason'] as const)), 'attempts', 'firstFailedAt'],
  };
}

/** Reads the headers that services write, without checking the writer. */
function statedByHeaders(headers: Record<string, unknown>, kind: Kind) {
  const attempts = headers[HEADER.attempt];
  return {
    operation: text(headers[HEADER.routingKey]),
    attempts: Number.isSafeInteger(attempts) ? (attempts as number) : undefined,
    firstFailedAt: dateOf(headers[HEADER.firstFailedAt]),
    ...(kind === 'crashed' ? CRASHED : { ...UNEXPLAINED, ...errorIn(headers) }),
  };
}

function errorIn(headers: Record<string, unknown>): Partial<Pick<Testimony, 'status' | 'reason'>> {
  const status = text(headers[HEADER.deadStatus]);
  const reason = text(headers[HEADER.deadReason]);
  return { ...(status !== undefined && { status }), ...(reason !== undefined && { reason }) };
}

function stubOf(headers: Record<string, unknown>): Testimony['stubOf'] {
  const { [HEADER.deadSize]: bytes, [HEADER.deadHash]: sha256 } = headers;
  if (bytes === undefined && sha256 === undefined) return undefined;
  return { bytes: Number.isSafeInteger(bytes) ? (bytes as number) : undefined, sha256: text(sha256) };
}

/** The only command that other services may send to this service; undefined when there are several. */
function onlyCommandOf(service: ServiceName): string | undefined {
  const [only, ...others] = OPEN_MESSAGES.filter((message) => message.service === service && message.kind === 'command');
  return others.length === 0 ? only?.pattern : undefined;
}

/** Time of the dead-lettering, from the first entry of x-death. */
function timeOfDeath(headers: Record<string, unknown>): Date | undefined {
  const deaths = headers['x-death'];
  const last: unknown = Array.isArray(deaths) ? deaths[0] : undefined;
  const seconds = (last as { time?: { value?: unknown } } | null | undefined)?.time?.value;
  return typeof seconds === 'number' ? dateOf(seconds * 1000) : undefined;
}

/** A Date from epoch milliseconds; undefined when out of range. */
function dateOf(milliseconds: unknown): Date | undefined {
  const date = new Date(typeof milliseconds === 'number' ? milliseconds : NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

const headersOf = ({ headers }: ConsumeMessage['properties']): Record<string, unknown> => headers ?? {};
const string = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
