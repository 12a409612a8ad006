import type { ConsumeMessage } from 'amqplib';
import type { ServiceName } from '@app/contracts/message';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import { HEADER } from '@app/amqp/headers';
import type { Kind, LetterQueue } from './letter-queue';
import { text } from './printable';

/**
 * The writer of all that a letter says of itself.
 *
 * - `service`: the broker vouches that a service put it here, or published what the broker moved here. Headers of services are their own.
 * - `unknown`: letters of versions without lanes, whose services set no `user_id`, and what expired in their queue of commands.
 */
export type Origin = 'service' | 'unknown';

/** A fact that may be said without a proof. */
export type Claim = 'operation' | 'status' | 'reason' | 'attempts' | 'firstFailedAt';

/** All that is known of a letter, beside its body and the parts that its publisher may write as it likes. */
export interface Testimony {
  origin: Origin;
  /** Broker account of its publisher. Absent: nobody's, because the publisher gave no `user_id`; or not known, when the origin is not. */
  account?: string;
  operation?: string;
  status: string;
  reason: string;
  attempts?: number;
  firstFailedAt?: Date;
  /** Of the caller who waited for it, if anybody did. */
  correlationId?: string;
  /** Exchange of the lane that it came by. */
  lane?: string;
  /** Its whole body, when only the beginning was kept. */
  stubOf?: { bytes?: number; sha256?: string };
  /** The parts that anybody may have written. */
  unproved: readonly Claim[];
}

const CRASHED = { status: 'CRASHED', reason: 'crashed its consumers, until the broker gave it up' } as const;
const UNEXPLAINED = { status: 'UNKNOWN', reason: 'came here without a reason' } as const;

/** Statuses that are no errors of a service. */
export const OTHER_STATUSES: readonly string[] = [CRASHED.status, UNEXPLAINED.status];

/**
 * Judges what a letter says of itself. `x-death` proves nothing: a publisher may write it, and RabbitMQ adds its own entry to what it finds.
 *
 * @param services broker accounts of the services: nobody else can set them as `user_id`
 */
export function testimonyOf(message: ConsumeMessage, queue: LetterQueue, services: ReadonlySet<string>): Testimony {
  const userId: unknown = message.properties.userId;
  const byService = typeof userId === 'string' && services.has(userId);
  if (!byService) return ofUnknown(message, queue);
  // Services name the operation of all that they put here.
  return HEADER.routingKey in headersOf(message.properties) ? ofService(message, queue.kind) : asPublished(message);
}

function ofService({ properties }: ConsumeMessage, kind: Kind): Testimony {
  const headers = headersOf(properties);
  return {
    origin: 'service',
    ...toldByHeaders(headers, kind),
    account: text(headers[HEADER.originUser]),
    correlationId: string(headers[HEADER.correlationId]),
    lane: string(headers[HEADER.lane]),
    stubOf: stubOf(headers),
    unproved: [],
  };
}

/** What a service had published, an event above all, and the broker moved here after too many deliveries. */
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
  const told = toldByHeaders(headers, kind);
  const isSure = kind === 'crashed';
  return {
    origin: 'unknown',
    ...told,
    operation: told.operation ?? onlyCommandOf(service),
    firstFailedAt: told.firstFailedAt ?? timeOfDeath(headers),
    correlationId: string(headers[HEADER.correlationId] ?? properties.correlationId),
    unproved: ['operation', ...(isSure ? [] : (['status', 'reason'] as const)), 'attempts', 'firstFailedAt'],
  };
}

/** Reads the headers of services, whoever wrote them. */
function toldByHeaders(headers: Record<string, unknown>, kind: Kind) {
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

/** The operation of every command that other services send to this one; undefined when there are several. */
function onlyCommandOf(service: ServiceName): string | undefined {
  const [only, ...others] = OPEN_MESSAGES.filter((message) => message.service === service && message.kind === 'command');
  return others.length === 0 ? only?.pattern : undefined;
}

/** When the broker moved it here, as the entry that stands first says. */
function timeOfDeath(headers: Record<string, unknown>): Date | undefined {
  const deaths = headers['x-death'];
  const last: unknown = Array.isArray(deaths) ? deaths[0] : undefined;
  const seconds = (last as { time?: { value?: unknown } } | null | undefined)?.time?.value;
  return typeof seconds === 'number' ? dateOf(seconds * 1000) : undefined;
}

/** Epoch milliseconds that a Date can hold. */
function dateOf(milliseconds: unknown): Date | undefined {
  const date = new Date(typeof milliseconds === 'number' ? milliseconds : NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

const headersOf = ({ headers }: ConsumeMessage['properties']): Record<string, unknown> => headers ?? {};
const string = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
