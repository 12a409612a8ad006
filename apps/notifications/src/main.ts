import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { MicroserviceOptions } from '@nestjs/microservices';
import { ListMemberships } from '@app/contracts/memberships.list';
import { AddNotification } from '@app/contracts/notifications.add';
import { Authorize } from '@app/contracts/users.authorize';
import { Exists } from '@app/contracts/users.exists';
import { connectWhenReady, databaseObstacle, isUnusable, migrationObstacle, requireUsable } from '@app/postgres/connect';
import { createDataSource } from '@app/postgres/connections/data-source';
import { isTimeout, isTransient } from '@app/postgres/errors';
import { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { OutboxFull, OutboxRelay } from '@app/postgres/outbox/outbox';
import { EventPublisher } from '@app/rabbitmq/events/event.publisher';
import { ContractPipe } from '@app/rabbitmq/server/contract.pipe';
import { PassThroughFilter } from '@app/rabbitmq/server/pass-through.filter';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { RabbitServer } from '@app/rabbitmq/server/rabbit.server';
import { runService } from '@app/runtime/run-service';
import { brokerTlsFiles, databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { NotificationsConfig } from './config';
import { NotificationsErasureSteps } from './db/erasure-steps';
import { INSERT_NONE } from './db/insert-notifications.sql';
import { takeEvents } from './db/outbox.repository';
import { DATABASE } from './db/schema';
import { NotificationsModule } from './notifications.module';
import { askUsers } from './users-service/ask-users';
import { Retention } from './retention/retention';

void runService('notifications', NotificationsConfig, async (config, { logger, readiness, stopping }) => {
  const dataSource = createDataSource({
    name: 'notifications',
    url: config.databaseUrl,
    tlsFiles: databaseTlsFiles(config),
    ...DATABASE,
    poolSize: config.databasePoolSize,
  });
  const broker = { url: config.amqpUrl, tlsFiles: brokerTlsFiles(config) };
  const client = new RabbitClient({
    connection: { ...broker, name: 'notifications' },
    calls: { as: 'notifications', messages: [Authorize, Exists, ListMemberships] },
    exchange: config.callsExchange,
    drainTimeoutMs: 2000,
  });
  const events = new EventPublisher({ connection: { ...broker, name: 'notifications' }, service: 'notifications' });
  const outbox = new OutboxRelay(dataSource, {
    take: takeEvents,
    publish: (batch) => events.publish(batch),
    fromMemory: true,
  });
  const erasures = new ErasureLoop(new NotificationsErasureSteps(dataSource, (event, since) => outbox.add([event], since)));
  const retention = new Retention(dataSource, config.retentionDays);
  const server = new RabbitServer({
    connection: { ...broker, name: 'notifications' },
    service: 'notifications',
    queues: config.queues,
    prefetch: { commands: config.commandPrefetch, queries: config.queryPrefetch },
    isUnavailable: async (error) => error instanceof OutboxFull || isUnusable(dataSource, error),
    isTransient,
    isTimeout,
    withoutScope: [AddNotification.pattern],
    confirmReplies: true,
    publishers: {
      trusted: config.trustedPublishers,
      isGranted: async (publisher, apiKey, context) =>
        (await askUsers(client, Authorize, { publisher }, { ...context, apiKey })).granted,
    },
    probe: async () => {
      await requireUsable(dataSource);
      outbox.requireRoom();
    },
  });

  const app = await NestFactory.createMicroservice<MicroserviceOptions>(
    NotificationsModule.with(dataSource, client, outbox, erasures),
    {
      strategy: server,
      logger,
    },
  );
  app.useGlobalPipes(new ContractPipe());
  app.useGlobalFilters(new PassThroughFilter());

  readiness.add('database', () => databaseObstacle(dataSource));
  readiness.add('migrations', () => migrationObstacle(dataSource));
  readiness.add('broker', () => server.check() ?? client.check() ?? events.check());
  readiness.add('outbox', () => outbox.check());
  const close = async () => {
    await app.close();
    await erasures.stop();
    await Promise.all([outbox.stop(), retention.stop()]);
    await Promise.all([client.close(), events.close()]);
    if (dataSource.isInitialized) await dataSource.destroy();
  };

  if (await connectWhenReady(dataSource, stopping, [INSERT_NONE])) {
    await client.connect();
    events.start();
    outbox.start();
    retention.start();
    erasures.start();
    await app.listen();
  }
  return close;
});
