import { Registry } from 'prom-client';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { FaultProxy } from '../../../test/faults/harness/fault-proxy';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';

type StubOptions = Omit<Parameters<typeof startUsersStub>[0], 'connection'>;

/** A users service whose connections to the broker go through a proxy, and a client of it without one. */
export class UsersBehindProxy {
  private constructor(
    readonly proxy: FaultProxy,
    readonly client: RabbitClient,
    readonly server: RabbitServer,
  ) {}

  /** @param brokerUrl of an empty virtual host */
  static async start(brokerUrl: string, handlers: UsersHandlers, options: StubOptions): Promise<UsersBehindProxy> {
    await declareTopology(brokerUrl);
    const proxy = await FaultProxy.to(brokerUrl);
    const client = new RabbitClient({ connection: { url: brokerUrl, name: 'gateway' }, metrics: new Registry() });
    await client.connect();
    const server = await startUsersStub({ ...options, connection: { url: proxy.through(brokerUrl), name: 'users' } }, handlers);
    await eventually(() => server.check() === undefined && client.check() === undefined);
    return new UsersBehindProxy(proxy, client, server);
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.server.close();
    await this.proxy.close();
  }
}
