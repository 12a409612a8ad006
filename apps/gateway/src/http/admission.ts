import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '@app/contracts/error';
import { MAX_BODY_BYTES } from '@app/contracts/json';
import type { CallOptions } from '@app/rabbitmq/rabbit.client';
import type { Authenticator } from '../auth/authenticator';
import { readCredentials } from '../auth/credentials';
import type { Connections } from './connections';
import { refuseContent } from './content';
import { HttpError, nothingHere, refusal } from './http-error';
import { bytesArriving, callsInFlight } from './metrics';
import type { Rate } from './rate';
import type { Limit, Refusals } from './refusals';
import { Room } from './room';

/** Who calls, and how the call is passed on. */
export type Caller = Omit<CallOptions, 'idempotencyKey'> & { apiKey: string };

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the admission; a handler behind it always finds it. */
    caller?: Caller;
    /** What the request was answered with an error for. */
    failure?: unknown;
    /** Bytes of the body that the admission has made room for. */
    arriving: number;
    /** Answered by {@link Refusals}, which tell the log of it. */
    refused: boolean;
  }
  interface FastifyContextConfig {
    /** Served without credentials. Everything else asks for them. */
    public?: boolean;
  }
}

const ANSWERED_METHODS = ['GET', 'HEAD', 'POST'];

/** Shorter bodies are bounded by the connections that there may be, so that slow callers with large ones leave room for everybody else. */
const LARGE_BYTES = 64 * 1024;
const MAX_BYTES_ARRIVING = 256 * 1024 * 1024;

/** What a request has to pass, in this order. */
export class Admission {
  private readonly inFlight: Room;
  private readonly arriving = new Room(MAX_BYTES_ARRIVING, bytesArriving);

  constructor(
    private readonly authenticator: Authenticator,
    private readonly rate: Rate,
    private readonly refusals: Refusals,
    private readonly connections: Connections,
    private readonly limits: { maxInFlight: number; requestTimeoutMs: number },
  ) {
    this.inFlight = new Room(limits.maxInFlight, callsInFlight);
  }

  /** Before the body is read, as a Fastify onRequest hook: a guard of Nest would run after it is parsed. */
  admit = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    this.isAdmitted(request, reply).then((admitted) => admitted && done(), done);
  };

  /** With its body, as a Fastify preValidation hook: callers who take their time for one hold nothing that others wait for. */
  enter = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (!request.caller) return done();
    this.bodyHasArrived(request);
    if (!this.inFlight.take()) return this.refuse(request, reply, 'in_flight', request.caller);
    this.connections.onClosed(reply.raw, () => this.inFlight.give());
    done();
  };

  /** Whether there are as many calls in flight as there may be. */
  isFull = (): boolean => !this.inFlight.has();

  /** @returns false when it has been answered with 429 */
  private async isAdmitted(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    if (request.is404) throw notServed(request);
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined)
      throw refusal(400, 'The header Host is missing.');
    if (request.routeOptions.config.public) return true;
    const apiKey = await this.authenticate(request);
    const waitMs = await this.rate.excess(apiKey);
    const limit = waitMs === undefined ? this.limitMet(request, reply) : 'rate';
    if (limit) this.refuse(request, reply, limit, { waitMs, apiKey });
    else request.caller = { apiKey, requestId: request.id, timeoutMs: this.limits.requestTimeoutMs };
    return !limit;
  }

  private refuse(request: FastifyRequest, reply: FastifyReply, limit: Limit, more?: { waitMs?: number; apiKey: string }): void {
    request.refused = true;
    reply.hijack();
    this.refusals.refuse(reply.raw, request.id, limit, more);
  }

  private limitMet(request: FastifyRequest, reply: FastifyReply): Limit | undefined {
    if (this.isFull()) return 'in_flight';
    refuseContent(request.headers);
    return this.makeRoomForBody(request, reply) ? undefined : 'arriving';
  }

  private makeRoomForBody(request: FastifyRequest, reply: FastifyReply): boolean {
    const bytes = Number(request.headers['content-length'] ?? MAX_BODY_BYTES);
    if (bytes <= LARGE_BYTES) return true;
    if (!this.arriving.take(bytes)) return false;
    request.arriving = bytes;
    this.connections.onClosed(reply.raw, () => this.bodyHasArrived(request));
    return true;
  }

  private bodyHasArrived(request: FastifyRequest): void {
    if (request.arriving > 0) this.arriving.give(request.arriving);
    request.arriving = 0;
  }

  private async authenticate(request: FastifyRequest): Promise<string> {
    const credentials = readCredentials(request.raw.rawHeaders);
    const verdict = credentials ? await this.authenticator.verdictOf(credentials, request.id) : 'refused';
    if (!credentials || verdict === 'refused') {
      throw new ApiError('UNAUTHENTICATED', 'A valid x-svc-api-key and x-svc-auth-token are required.');
    }
    if (verdict === 'disabled') throw new ApiError('PERMISSION_DENIED', 'This API key is disabled.');
    return credentials.apiKey;
  }
}

function notServed({ server, raw }: FastifyRequest): ApiError {
  const allowed = ANSWERED_METHODS.filter((method) => isServed(server, method, raw.url ?? ''));
  if (allowed.length === 0) return nothingHere();
  return new HttpError(405, 'INVALID_ARGUMENT', `The method must be ${allowed.join(' or ')}.`, { allow: allowed.join(', ') });
}

const isServed = (server: FastifyInstance, method: string, url: string) => server.findRoute({ method, url }) !== null;
