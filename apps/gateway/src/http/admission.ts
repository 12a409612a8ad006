import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '@app/contracts/error';
import { MAX_BODY_BYTES } from '@app/contracts/json';
import type { CallOptions } from '@app/rabbitmq/rabbit.client';
import type { Authenticator } from '../auth/authenticator';
import { readCredentials } from '../auth/credentials';
import type { Connections } from './connections';
import { refuseContent } from './content';
import { HttpError, nothingHere, refusal } from './http-error';
import { bytesArriving, callsInFlight, rateLimited } from './metrics';
import type { Rate } from './rate';
import { Room } from './room';

/** Who calls, and how the call is passed on. */
export type Caller = CallOptions & { apiKey: string };

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the admission; a handler behind it always finds it. */
    caller?: Caller;
    /** What the request was answered with an error for. */
    failure?: unknown;
    /** Bytes of the body that the admission has made room for. */
    arriving: number;
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
    private readonly connections: Connections,
    private readonly limits: { maxInFlight: number; requestTimeoutMs: number },
  ) {
    this.inFlight = new Room(limits.maxInFlight, callsInFlight);
  }

  /** Before the body is read, as a Fastify onRequest hook: a guard of Nest would run after it is parsed. */
  admit = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (request.is404) throw notServed(request);
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined)
      throw refusal(400, 'The header Host is missing.');
    if (request.routeOptions.config.public) return;
    const apiKey = await this.authenticate(request);
    await this.limit(apiKey);
    refuseContent(request.headers);
    this.makeRoomForBody(request, reply);
    request.caller = { apiKey, requestId: request.id, timeoutMs: this.limits.requestTimeoutMs };
  };

  /** With its body, as a Fastify preValidation hook: callers who take their time for one hold nothing that others wait for. */
  enter = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!request.caller) return;
    this.bodyHasArrived(request);
    if (!this.inFlight.take()) throw tooMany('in_flight', 'Too many calls at the moment.', 1000);
    this.connections.onClosed(reply.raw, () => this.inFlight.give());
  };

  /** Whether there are as many calls in flight as there may be. */
  isFull = (): boolean => !this.inFlight.has();

  private makeRoomForBody(request: FastifyRequest, reply: FastifyReply): void {
    const bytes = Number(request.headers['content-length'] ?? MAX_BODY_BYTES);
    if (bytes <= LARGE_BYTES) return;
    if (!this.arriving.take(bytes)) throw tooMany('arriving', 'Too many calls at the moment.', 1000);
    request.arriving = bytes;
    this.connections.onClosed(reply.raw, () => this.bodyHasArrived(request));
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

  private async limit(apiKey: string): Promise<void> {
    const excessMs = await this.rate.excess(apiKey);
    if (excessMs !== undefined) throw tooMany('rate', 'Too many calls of this API key.', excessMs);
    if (!this.inFlight.has()) throw tooMany('in_flight', 'Too many calls at the moment.', 1000);
  }
}

function tooMany(limit: string, message: string, waitMs: number): HttpError {
  rateLimited.inc({ limit });
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new HttpError(429, 'RESOURCE_EXHAUSTED', message, { 'retry-after': String(seconds) });
}

function notServed({ server, raw }: FastifyRequest): ApiError {
  const allowed = ANSWERED_METHODS.filter((method) => isServed(server, method, raw.url ?? ''));
  if (allowed.length === 0) return nothingHere();
  return new HttpError(405, 'INVALID_ARGUMENT', `The method must be ${allowed.join(' or ')}.`, { allow: allowed.join(', ') });
}

const isServed = (server: FastifyInstance, method: string, url: string) => server.findRoute({ method, url }) !== null;
