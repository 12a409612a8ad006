import type { IncomingMessage } from 'node:http';
import type { Span } from '@opentelemetry/api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { unavailable } from '@app/amqp/calls/call-errors';
import { ApiError, type ErrorStatus } from '@app/contracts/error';
import { MAX_BODY_BYTES } from '@app/contracts/json';
import type { CallOptions } from '@app/rabbitmq/client/rabbit.client';
import type { Authenticator } from './authenticator';
import type { BusyKeys } from './busy-keys';
import { credentialsOf } from './credentials';
import type { Connections } from '../server/connections';
import { refuseContent } from './content';
import { Answers } from './answers';
import { CallTurns, HEAVIEST_BYTES } from './call-turns';
import { Hold, limitOf, type Capacity } from './hold';
import { changesRows, isHealth, kindOf } from './kinds';
import { LARGE_BYTES, LargeBodies } from './large-bodies';
import { bytesArriving, bytesArrivingLimit } from '../server/metrics';
import { notServed } from '../server/methods';
import { networkOf } from '../server/network-of';
import { ambiguityOf } from './oddities';
import type { UnreadRefusal } from './refuse-unread';
import { Places } from './places';
import type { KeyRateLimiter } from './key-rate-limiter';
import type { Limit, TooManyRequests } from './too-many-requests';
import type { ServerLimits } from '../server/server-limits';
import { Shares } from './shares';

/** The caller of a request, and the options with which its call is published. */
export type Caller = Omit<CallOptions, 'idempotencyKey'> & { apiKey: string };

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the admission; always present in handlers behind it. */
    caller?: Caller;
    /** The thrown value, if the request was answered with an error. */
    failure?: unknown;
    /** The `error.status` of that answer. */
    errorStatus?: ErrorStatus;
    /** The limited resources that the call holds. */
    hold?: Hold;
    /** Undefined while tracing is off. */
    span?: Span;
    /** Answered by {@link TooManyRequests}, which also logs it. */
    refused: boolean;
  }
  interface FastifyContextConfig {
    /** Served without credentials. All other routes require them. */
    public?: boolean;
  }
}

/** Answers without an API key count only above this size. maxConnections limits the rest. */
const LARGE_ANSWER_BYTES = 4096;

/** Smaller bodies do not count: those of all connections together take as little memory as the connections themselves. */
const UNCOUNTED_BYTES = 2 * 1024;

export interface AdmissionLimits extends Pick<ServerLimits, 'maxBytesArriving' | 'maxSmallBytesArriving' | 'maxBytesWaiting'> {
  maxInFlight: number;
  requestTimeoutMs: number;
}

/** The checks that a request must pass, in this order. */
export class Admission {
  private readonly capacity: Capacity;

  constructor(
    private readonly authenticator: Authenticator,
    private readonly rate: KeyRateLimiter,
    private readonly tooMany: TooManyRequests,
    private readonly connections: Connections,
    private readonly limits: AdmissionLimits,
    private readonly busyKeys: BusyKeys,
  ) {
    bytesArrivingLimit.set(limits.maxBytesArriving);
    this.capacity = {
      places: new Places(limits.maxInFlight),
      bodies: new Shares(limits.maxBytesArriving, (held) => bytesArriving.set(held)),
      smallBodies: new Shares(limits.maxSmallBytesArriving),
      answers: new Answers(limits.maxBytesWaiting),
      turns: new CallTurns(),
      largeBodies: new LargeBodies(),
    };
  }

  /**
   * Refuses without Fastify: any call when all places are taken, and a call of a key that has its share, if its credentials were accepted just
   * before. The state of a key is shown only to its owner. Also the documentation, while many of its files are not read.
   */
  refusalUnread = (request: IncomingMessage): UnreadRefusal | undefined => {
    const kind = kindOf(request.url);
    const { places, answers } = this.capacity;
    if (!kind) return answers.isFullForNobody && !isHealth(request) ? { limit: 'strangers' } : undefined;
    if (places.isFull(kind)) return { limit: 'in_flight' };
    const network = networkOf(request.socket);
    if (!places.isUneven(kind) && !this.authenticator.isFull(network)) return undefined;
    const credentials = credentialsOf(request);
    if (!credentials) return undefined;
    if (this.authenticator.isRefused(credentials, network)) return { limit: 'credentials' };
    if (!this.authenticator.isAccepted(credentials)) return undefined;
    const met = places.problem(kind, credentials.apiKey);
    return met && { limit: limitOf('in_flight', met), apiKey: credentials.apiKey };
  };

  /** Whether it is a call whose credentials were accepted before. */
  isKnown = (request: IncomingMessage): boolean => {
    const credentials = kindOf(request.url) && credentialsOf(request);
    return credentials !== undefined && this.authenticator.isFamiliar(credentials);
  };

  /** Fastify onRequest hook, before the body is read: a Nest guard would run after it is parsed. */
  admit = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    this.isAdmitted(request, reply).then((admitted) => admitted && done(), done);
  };

  /** For the parser: undefined when a body may be parsed at once, else resolves when it is its turn. @throws ApiError when its time is over */
  whenTurnOfBody = ({ id, hold, caller }: FastifyRequest, bytes: number): Promise<void> | undefined => {
    hold?.bodyArrived(bytes);
    if (bytes <= LARGE_BYTES || !hold || !caller) return undefined;
    const arrivedAt = performance.now();
    return new Promise((resolve, reject) =>
      hold.whenTurnOfBody(bytes, caller.timeoutMs, (met) => {
        caller.timeoutMs -= performance.now() - arrivedAt;
        if (!met) resolve();
        else if (met === 'share') reject(this.tooMany.errorOf(id, 'arriving_share', caller.apiKey));
        else reject(unavailable('its large body had no turn in time'));
      }),
    );
  };

  /** Fastify preValidation hook, after the body is read: a caller with a slow body does not occupy a place. */
  enter = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const { caller, hold } = request;
    if (!hold || !caller) return done();
    const limit = hold.begin();
    if (limit) return this.refuse(request, reply, limit, caller);
    const arrivedAt = performance.now();
    hold.whenTurn(caller.timeoutMs, (met) => {
      if (met) return this.refuse(request, reply, met, caller);
      caller.timeoutMs -= performance.now() - arrivedAt;
      try {
        done();
      } catch (error) {
        // Fastify catches it only if the call did not wait. Else it would reach the call whose end gave this one its turn.
        done(error as Error);
      }
    });
  };

  /** Fastify onSend hook. A large answer is sent as a Buffer, so that its size in memory is known until the client has read it. */
  leave = (
    request: FastifyRequest,
    reply: FastifyReply,
    payload: unknown,
    done: (error: null, payload: unknown) => void,
  ): void => {
    const sent = typeof payload === 'string' && payload.length > LARGE_BYTES ? Buffer.from(payload) : payload;
    const bytes = typeof sent === 'string' ? Buffer.byteLength(sent) : Buffer.isBuffer(sent) ? sent.length : 0;
    const limit = request.hold ? request.hold.answered(bytes, reply.statusCode === 200) : this.takeForNobody(reply, bytes);
    done(null, limit ? this.tooMany.instead(reply, limit, request.caller?.apiKey) : sent);
  };

  private takeForNobody(reply: FastifyReply, bytes: number): Limit | undefined {
    if (bytes <= LARGE_ANSWER_BYTES) return undefined;
    const { answers } = this.capacity;
    const met = answers.takeForNobody(bytes);
    if (met) return met === 'share' ? 'strangers' : 'waiting';
    this.connections.onClosed(reply.raw, () => answers.giveForNobody(bytes));
    return undefined;
  }

  /** @returns false when the request was answered with 429 */
  private async isAdmitted(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const ambiguity = ambiguityOf(request.raw);
    if (ambiguity) throw ambiguity;
    if (request.is404) throw notServed(request.server, request.raw.url);
    if (request.routeOptions.config.public) return true;
    const { apiKey, isDisabled } = await this.authenticate(request);
    const waitMs = await this.rate.excess(apiKey);
    if (isDisabled && waitMs === undefined) throw new ApiError('PERMISSION_DENIED', 'This API key is disabled.');
    if (!isDisabled) this.busyKeys.count(apiKey);
    const limit = waitMs === undefined ? this.limitMet(request, reply, apiKey) : 'rate';
    if (limit) this.refuse(request, reply, limit, { waitMs, apiKey });
    else {
      // Looking up the credentials took part of it.
      const timeoutMs = this.limits.requestTimeoutMs - reply.elapsedTime;
      request.caller = { apiKey, requestId: request.id, timeoutMs, span: request.span };
      if (request.headers.expect !== undefined) continueWith(request, reply);
    }
    return !limit;
  }

  private refuse(request: FastifyRequest, reply: FastifyReply, limit: Limit, more?: { waitMs?: number; apiKey: string }): void {
    request.refused = true;
    reply.hijack();
    this.tooMany.refuse(reply.raw, request.id, limit, more);
  }

  private limitMet(request: FastifyRequest, reply: FastifyReply, apiKey: string): Limit | undefined {
    // The router also takes a path that is percent-encoded, or has a host or a fragment.
    const kind = kindOf(request.url) ?? kindOf(request.routeOptions.url);
    if (!kind) return undefined;
    const met = this.capacity.places.problem(kind, apiKey);
    if (met) return limitOf('in_flight', met);
    refuseContent(request.headers);
    const { url } = request.routeOptions;
    const hold = new Hold(this.capacity, kind, apiKey, changesRows(url) ? HEAVIEST_BYTES : 0, url);
    const bytes = Number(request.headers['content-length'] ?? MAX_BODY_BYTES);
    const limit = bytes > UNCOUNTED_BYTES ? hold.takeBody(bytes) : undefined;
    if (limit) return limit;
    request.hold = hold;
    this.connections.onClosed(reply.raw, () => hold.close());
    return undefined;
  }

  private async authenticate(request: FastifyRequest): Promise<{ apiKey: string; isDisabled: boolean }> {
    const credentials = credentialsOf(request.raw);
    const verdict = credentials
      ? await this.authenticator.verdictOf(credentials, {
          requestId: request.id,
          span: request.span,
          network: networkOf(request.raw.socket),
        })
      : 'refused';
    if (!credentials || verdict === 'refused') {
      throw new ApiError('UNAUTHENTICATED', 'A valid x-svc-api-key and x-svc-auth-token are required.');
    }
    request.raw.provedKey = credentials.apiKey;
    this.connections.proved(request.raw.socket);
    return { apiKey: credentials.apiKey, isDisabled: verdict === 'disabled' };
  }
}

/** Asks the client for the body, which is read only after all checks on the headers. A client of HTTP/1.0 would take this for the answer. */
function continueWith({ headers, raw: { httpVersion } }: FastifyRequest, { raw }: FastifyReply): void {
  if (httpVersion === '1.1' && /^100-continue$/i.test(headers.expect ?? '')) raw.writeContinue();
}
