import 'reflect-metadata';
import { RabbitClient } from '@app/rabbitmq/rabbit.client';
import { runService } from '@app/runtime/run-service';
import { MAX_FIRST_QUESTIONS } from './auth/authenticator';
import { gatewayConfig } from './config';
import { createGateway } from './create-gateway';

void runService('gateway', gatewayConfig, async (config, { logger, readiness }) => {
  const rabbit = new RabbitClient({
    connection: { url: config.amqpUrl, caFile: config.amqpCaFile, name: 'gateway' },
    // Every call in flight and its credentials' renewal, and the first questions: the gateway's own limits are met before this one.
    maxPending: 2 * config.maxInFlight + MAX_FIRST_QUESTIONS,
  });
  readiness.add('broker', () => rabbit.check());
  const app = await createGateway({ config, rabbit, logger, readiness });
  // Does not wait for the broker: until it is there, calls are answered with 503.
  await rabbit.connect();
  await app.listen(config.port, '0.0.0.0');
  logger.log({ msg: 'listening', url: await app.getUrl() });
  return async () => {
    await app.close();
    await rabbit.close();
  };
});
