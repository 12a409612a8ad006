import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '@app/contracts/error';
import type { CallOptions } from '@app/rabbitmq/rabbit.client';
import type { Authenticator } from '../auth/authenticator';
import { readCredentials } from '../auth/credentials';
import type { Connections } from './connections';
import { refuseContent } from './content';
import { HttpError, nothingHere, refusal } from './http-error';
import type { InFlight } from './in-flight';
import { rateLimited } from './metrics';
import type { Rate } from './rate';

/** Who calls, and how the call is passed on. */
export type Caller = CallOptions & { apiKey: string };

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the admission; a handler behind it always finds it. */
    caller?: Caller;
    /** What the request was answered with an error for. */
    failure?: unknown;
  }
  interface FastifyContextConfig {
    /** Served without credentials. Everything else asks for them. */
    public?: boolean;
  }
}

const ANSWERED_METHODS = ['GET', 'HEAD', 'POST'];

/** What a request has to pass before its body is read, in this order. */
export class Admission {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly rate: Rate,
    private readonly inFlight: InFlight,
    private readonly connections: Connections,
    private readonly requestTimeoutMs: number,
  ) {}

  /** As a Fastify onRequest hook: a guard of Nest would run after the body is parsed. */
  admit = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (request.is404) throw notServed(request);
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined)
      throw refusal(400, 'The header Host is missing.');
    if (request.routeOptions.config.public) return;
    const apiKey = await this.authenticate(request);
    await this.limit(apiKey, reply);
    refuseContent(request.headers);
    request.caller = { apiKey, requestId: request.id, timeoutMs: this.requestTimeoutMs };
  };

  private async authenticate(request: FastifyRequest): Promise<string> {
    const credentials = readCredentials(request.raw.rawHeaders);
    const verdict = credentials ? await this.authenticator.verdictOf(credentials, request.id) : 'refused';
    if (!credentials || verdict === 'refused') {
      throw new ApiError('UNAUTHENTICATED', 'A valid x-svc-api-key and x-svc-auth-token are required.');
    }
    if (verdict === 'disabled') throw new ApiError('PERMISSION_DENIED', 'This API key is disabled.');
    return credentials.apiKey;
  }

  private async limit(apiKey: string, reply: FastifyReply): Promise<void> {
    const excessMs = await this.rate.excess(apiKey);
    if (excessMs !== undefined) throw tooMany('rate', 'Too many calls of this API key.', excessMs);
    if (!this.inFlight.enter()) throw tooMany('in_flight', 'Too many calls at the moment.', 1000);
    this.connections.onClosed(reply.raw, () => this.inFlight.leave());
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
