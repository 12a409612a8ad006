import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { ApiKeyRevoked } from '@app/contracts/events.users';
import { Authenticate } from '@app/contracts/users.authenticate';
import { EventSubscriber } from '@app/rabbitmq/events/event.subscriber';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { addressToListenOn } from '@app/runtime/settings/listen-address';
import { within } from '@app/runtime/within';
import { runService } from '@app/runtime/run-service';
import { brokerTlsFiles } from '@app/runtime/settings/tls-settings';
import { Authenticator, MAX_FIRST_QUESTIONS } from './admission/authenticator';
import { BusyKeys } from './admission/busy-keys';
import { probeUsers } from './admission/probe-users';
import { GatewayConfig } from './config';
import { createGateway } from './create-gateway';
import { listen } from './server/listen';
import { mostConnections } from './server/most-connections';
import { SERVER_LIMITS } from './server/server-limits';

/** How long the drain waits for running calls, in milliseconds. The caller of a longer one gets 504 then, and not the end of its connection. */
const RUNNING_CALLS_MS = 14_000;

void runService('gateway', GatewayConfig, async (config, { logger, readiness, reports }) => {
  const connection = { url: config.amqpUrl, tlsFiles: brokerTlsFiles(config), name: 'gateway' };
  const rabbit = new RabbitClient({
    connection,
    calls: { as: 'gateway', messages: [Authenticate, ...HTTP_MESSAGES] },
    exchange: config.callsExchange,
    // Every call in flight with the renewal of its credentials, plus the first questions and the probe: the gateway's own limits are reached
    // first.
    maxPending: 2 * config.maxInFlight + MAX_FIRST_QUESTIONS + 1,
    // Calls have had their time when it is closed.
    drainTimeoutMs: 1000,
  });
  const authenticator = new Authenticator(rabbit, config.authStaleMaxMs);
  // Once it could serve it stays ready, because only this process can answer 503 and so promise that nothing was done. The load balancer would
  // answer with an error that promises nothing.
  const required = () => !authenticator.hasAnswered;
  readiness.add('broker', () => rabbit.check(), { required });
  readiness.add('users', () => authenticator.check(), { required });
  // Not part of the readiness: without it a revocation still takes effect, within 5 s.
  const revocations = new EventSubscriber({
    connection,
    event: ApiKeyRevoked,
    onEvent: ({ apiKey }) => authenticator.forget(apiKey),
  });
  const busyKeys = new BusyKeys();
  reports.set('/tenants', busyKeys.report);
  const maxConnections = mostConnections(SERVER_LIMITS.maxConnections);
  if (maxConnections < SERVER_LIMITS.maxConnections)
    logger.warn({ msg: 'the limit of open files allows fewer connections than usual', maxConnections });
  const app = await createGateway({ config, rabbit, authenticator, logger, readiness, busyKeys, limits: { maxConnections } });
  // Does not wait for the broker: until it is connected, calls are answered with 503.
  await rabbit.connect();
  revocations.start();
  const stopProbing = probeUsers(authenticator, rabbit);
  const close = await listen(app, { port: config.port, host: await addressToListenOn(config.host) });
  logger.log({ msg: 'listening', url: await app.getUrl() });
  return async () => {
    stopProbing();
    const answered = close();
    await within(RUNNING_CALLS_MS, answered);
    await Promise.all([rabbit.close(), revocations.close(), answered]);
  };
});
