import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { MAX_BODY_BYTES } from '@app/contracts/json';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import type { NestLogger } from '@app/runtime/logger';
import type { Readiness } from '@app/runtime/readiness';
import type { Authenticator } from './admission/authenticator';
import type { GatewayConfig } from './config';
import { GatewayModule } from './gateway.module';
import { Admission } from './admission/admission';
import { ambiguityOf, MAX_HEADERS } from './admission/oddities';
import { BusyKeys } from './admission/busy-keys';
import { requestsInPieces } from './server/body-pieces';
import { answerClientErrors, answerConnect } from './server/client-errors';
import { Connections } from './server/connections';
import { acceptJsonBodies } from './admission/content';
import { ErrorFilter, sendError } from './server/error.filter';
import { nothingHere } from './server/http-error';
import { connectionsLimit, keyRateLimit } from './server/metrics';
import { refuseUnread } from './admission/refuse-unread';
import { KeyRateLimiter } from './admission/key-rate-limiter';
import { TooManyRequests } from './admission/too-many-requests';
import { requestIdOf } from './server/request-id';
import { logRequests } from './server/request-log';
import { traceRequest } from './server/request-span';
import { SmallPieces } from './server/small-pieces';
import { SERVER_LIMITS, type ServerLimits } from './server/server-limits';
import { StrangerLines } from './server/stranger-lines';
import { UnprovedConnections } from './server/unproved-connections';
import { serveDocumentation } from './docs/documentation';

export interface GatewayParts {
  config: Pick<GatewayConfig, 'requestTimeoutMs' | 'rateLimitPerSecond' | 'maxInFlight' | 'keepAliveTimeoutMs'>;
  rabbit: Pick<RabbitClient, 'call'>;
  authenticator: Authenticator;
  logger: NestLogger;
  readiness: Readiness;
  /** Default: its own, which nobody reads. */
  busyKeys?: BusyKeys;
  /** Overrides of {@link SERVER_LIMITS}. */
  limits?: Partial<ServerLimits>;
}

/** Creates the HTTP application, which does not listen yet. Its close() finishes the running requests and does not close the client. */
export async function createGateway({
  config,
  rabbit,
  authenticator,
  logger,
  readiness,
  busyKeys = new BusyKeys(),
  limits,
}: GatewayParts): Promise<NestFastifyApplication> {
  const serverLimits = { ...SERVER_LIMITS, ...limits };
  const unproved = new UnprovedConnections();
  const connections = new Connections(serverLimits, logger, unproved);
  const tooMany = new TooManyRequests(logger, readiness, connections);
  const rate = new KeyRateLimiter(config.rateLimitPerSecond);
  const admission = new Admission(authenticator, rate, tooMany, connections, { ...serverLimits, ...config }, busyKeys);

  const strangers = new StrangerLines(logger);
  const pieces = new SmallPieces(logger, unproved, (socket) => connections.close(socket, 'pieces'));
  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    void reply.header('x-request-id', request.id);
    traceRequest(request, reply, connections);
    logRequests(request, reply, connections, logger, strangers);
  };
  const { keepAliveTimeoutMs } = config;
  const adapter = createAdapter(connections, pieces, strangers, { ...serverLimits, keepAliveTimeoutMs }, begin);
  const fastify = adapter.getInstance();
  refuseUnread(fastify.server, admission, tooMany, connections);
  connections.watch(fastify.server);
  // A client that has closed its sending side still gets its answers.
  Object.assign(fastify.server, { httpAllowHalfOpen: true });
  fastify.server.on('connect', answerConnect(fastify, connections, strangers));
  // Node drops further ones, so that one more shows that there were too many. It keeps those of headers that never end until the timeout.
  fastify.server.maxHeadersCount = MAX_HEADERS + 1;
  connectionsLimit.set(serverLimits.maxConnections);
  keyRateLimit.set(config.rateLimitPerSecond);
  // 100-continue is answered after the credentials are checked. Other expectations are ignored; by default Node answers 417 without a body.
  for (const event of ['checkContinue', 'checkExpectation'])
    fastify.server.on(event, (request, response) => fastify.server.emit('request', request, response));

  acceptJsonBodies(fastify, admission.whenTurnOfBody);
  fastify.decorateRequest('caller', undefined);
  fastify.decorateRequest('failure', undefined);
  fastify.decorateRequest('errorStatus', undefined);
  fastify.decorateRequest('hold', undefined);
  fastify.decorateRequest('span', undefined);
  fastify.decorateRequest('refused', false);
  // Hooks with callbacks, because a promise for each hook would cost more than the hook itself.
  fastify.addHook('onRequest', (request, reply, done) => {
    begin(request, reply);
    done();
  });
  fastify.addHook('onRequest', admission.admit);
  fastify.addHook('preValidation', admission.enter);
  fastify.addHook('onSend', admission.leave);
  fastify.addHook('onSend', (_request, reply, _payload, done) => {
    // While draining, clients must send their next request on a new connection, to another process.
    if (readiness.draining) {
      if (connections.endsBehind(reply.raw)) void reply.header('connection', 'close');
      // Fastify has said that it ends.
      else if (reply.raw.hasHeader('connection')) reply.raw.setHeader('connection', 'keep-alive');
    }
    done();
  });
  // Node calls it when the server closes. Not at once: a call may be on its way, and a proxy would answer it with 502. What has arrived by
  // then is read before setImmediate().
  const closeIdle = () => setImmediate(() => connections.closeIdle());
  Object.assign(fastify.server, { closeIdleConnections: () => setTimeout(closeIdle, serverLimits.lastCallMs).unref() });
  fastify.addHook('preClose', async () => {
    readiness.draining = true;
    setTimeout(() => connections.closeSlow(), serverLimits.lastArrivalMs).unref();
  });
  serveDocumentation(fastify);

  const app = await NestFactory.create<NestFastifyApplication>(GatewayModule.with(rabbit, readiness), adapter, {
    logger,
    bodyParser: false,
    abortOnError: false,
  });
  app.useGlobalFilters(new ErrorFilter());
  return app;
}

function createAdapter(
  connections: Connections,
  pieces: SmallPieces,
  strangers: StrangerLines,
  limits: ServerLimits & Pick<GatewayConfig, 'keepAliveTimeoutMs'>,
  begin: (request: FastifyRequest, reply: FastifyReply) => void,
): FastifyAdapter {
  return new FastifyAdapter({
    genReqId: requestIdOf,
    bodyLimit: MAX_BODY_BYTES,
    // Fastify calls this, before any hook, for a path that cannot be decoded: answer it like any unknown path.
    frameworkErrors: (_error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      begin(request, reply);
      sendError(reply, ambiguityOf(request.raw) ?? nothingHere());
    },
    clientErrorHandler: answerClientErrors(connections, strangers),
    // Requests that arrive on an open connection while the server closes are served: that is cheaper than a retry.
    return503OnClosing: false,
    skipMiddie: true,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    http: {
      IncomingMessage: requestsInPieces(pieces.arrived),
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      maxHeaderSize: limits.maxHeaderBytes,
      // The admission refuses a missing Host instead, with a body.
      requireHostHeader: false,
    },
  });
}
