import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { ApiKeysRepository, WRITTEN_ELSEWHERE } from '@app/api-keys/api-keys.repository';
import { connectWhenReady, databaseObstacle, isUnusable, migrationObstacle, requireUsable } from '@app/postgres/connect';
import { createDataSource } from '@app/postgres/connections/data-source';
import { isTimeout, isTransient } from '@app/postgres/errors';
import { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { OutboxFull, OutboxRelay } from '@app/postgres/outbox/outbox';
import { EventPublisher } from '@app/rabbitmq/events/event.publisher';
import { ContractPipe } from '@app/rabbitmq/server/contract.pipe';
import { PassThroughFilter } from '@app/rabbitmq/server/pass-through.filter';
import { RabbitServer } from '@app/rabbitmq/server/rabbit.server';
import { runService } from '@app/runtime/run-service';
import { brokerTlsFiles, databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { UsersConfig } from './config';
import { UsersErasureSteps } from './db/erasure-steps';
import { takeEvents } from './db/outbox.repository';
import { DATABASE } from './db/schema';
import { Retention } from './retention/retention';
import { UsersModule } from './users.module';

void runService('users', UsersConfig, async (config, { logger, readiness, stopping }) => {
  const dataSource = createDataSource({
    name: 'users',
    url: config.databaseUrl,
    tlsFiles: databaseTlsFiles(config),
    ...DATABASE,
    // One more connection, on which the outbox listens.
    poolSize: config.databasePoolSize + 1,
  });
  const apiKeys = new ApiKeysRepository(dataSource);
  const connection = { url: config.amqpUrl, tlsFiles: brokerTlsFiles(config), name: 'users' };
  const events = new EventPublisher({ connection, service: 'users' });
  const outbox = new OutboxRelay(dataSource, {
    take: takeEvents,
    publish: (batch) => events.publish(batch),
    wokenBy: WRITTEN_ELSEWHERE,
  });
  const erasures = new ErasureLoop(new UsersErasureSteps(dataSource, () => outbox.wake()));
  const retention = new Retention(dataSource);
  const server = new RabbitServer({
    connection,
    service: 'users',
    queues: ['commands', 'queries'],
    prefetch: { commands: config.commandPrefetch, queries: config.queryPrefetch },
    isUnavailable: async (error) => error instanceof OutboxFull || isUnusable(dataSource, error),
    isTransient,
    isTimeout,
    publishers: {
      trusted: config.trustedPublishers,
      isGranted: (publisher, apiKey) => apiKeys.isGranted(publisher, apiKey),
    },
    probe: async () => {
      await requireUsable(dataSource);
      outbox.requireRoom();
    },
  });

  const app = await NestFactory.createMicroservice<MicroserviceOptions>(UsersModule.with(dataSource, outbox, erasures), {
    strategy: server,
    logger,
  });
  app.useGlobalPipes(new ContractPipe());
  app.useGlobalFilters(new PassThroughFilter());

  readiness.add('database', () => databaseObstacle(dataSource));
  readiness.add('migrations', () => migrationObstacle(dataSource));
  readiness.add('broker', () => server.check() ?? events.check());
  readiness.add('outbox', () => outbox.check());
  const close = async () => {
    await app.close();
    await erasures.stop();
    await Promise.all([outbox.stop(), retention.stop()]);
    await events.close();
    if (dataSource.isInitialized) await dataSource.destroy();
  };

  // Do not consume before the database is ready.
  if (await connectWhenReady(dataSource, stopping)) {
    events.start();
    outbox.start();
    retention.start();
    erasures.start();
    await app.listen();
  }
  return close;
});
