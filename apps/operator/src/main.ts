import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { addressToListenOn } from '@app/runtime/listen-address';
import { runService } from '@app/runtime/run-service';
import { operatorConfig } from './config';
import { createServer } from './create-server';
import { overviewPage } from './pages/overview';
import { Watch } from './watch/watch';

void runService('operator', operatorConfig, async (config, { logger }) => {
  const watch = new Watch(config.processes);
  const app = createServer(config.token, logger);
  overviewPage(app, watch);
  watch.start();
  const url = await app.listen({ port: config.port, host: await addressToListenOn(config.host) });
  logger.log({ msg: 'listening', url });
  return async () => {
    watch.stop();
    await app.close();
  };
});
