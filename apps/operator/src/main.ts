import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { addressToListenOn } from '@app/runtime/settings/listen-address';
import { runService } from '@app/runtime/run-service';
import { brokerTlsFiles, databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { Keys } from './actions/keys';
import { Letters } from './actions/letters';
import { OperatorConfig } from './config';
import { createServer } from './create-server';
import { AuditRepository } from './db/audit.repository';
import { Databases } from './db/databases';
import { auditPages } from './pages/audit';
import { keysPages } from './pages/keys';
import { lettersPages } from './pages/letters';
import { overviewPage } from './pages/overview';
import { queuesPage } from './pages/queues';
import { workPage } from './pages/work';
import { BrokerQueues } from './watch/broker-queues';
import { Watch } from './watch/watch';

void runService('operator', OperatorConfig, async (config, { logger, readiness, stopping }) => {
  const tlsFiles = brokerTlsFiles(config);
  const { managementUrl, amqpUrl } = config;
  const queues = new BrokerQueues(
    managementUrl === undefined ? undefined : new ManagementApi(managementUrl, amqpUrl, { tlsFiles }),
  );
  const watch = new Watch(config.processes, queues);
  const databases = new Databases(config.databaseUrl, databaseTlsFiles(config));
  const audit = new AuditRepository(databases.own);
  const keys = new Keys(new ApiKeysRepository(databases.users));
  const letters = new Letters({ url: amqpUrl, tlsFiles, name: 'operator' }, config.services);

  const app = createServer(config.token, logger);
  overviewPage(app, watch);
  queuesPage(app, watch, queues);
  workPage(app, watch);
  lettersPages(app, letters, audit);
  keysPages(app, keys, audit);
  auditPages(app, audit);

  // It is ready without the database: it shows what is wrong.
  readiness.add('database', databases.check, { required: () => false });
  void databases.connect(stopping);
  watch.start();
  queues.start();
  const url = await app.listen({ port: config.port, host: await addressToListenOn(config.host) });
  logger.log({ msg: 'listening', url });
  return async () => {
    watch.stop();
    queues.stop();
    letters.close();
    await app.close();
    await databases.close();
  };
});
