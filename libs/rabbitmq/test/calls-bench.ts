import { Registry } from 'prom-client';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { unexpected } from './stubbed-users';

/** A client with few pending calls, and a users service that a test may start again with other settings. */
export class CallsBench {
  server?: RabbitServer;
  readonly handlers: UsersHandlers = { add: unexpected, authenticate: unexpected, exists: unexpected };

  private constructor(
    readonly broker: TestBroker,
    readonly client: RabbitClient,
    readonly metrics: Registry,
  ) {}

  static async start(): Promise<CallsBench> {
    const metrics = new Registry();
    const broker = await createTestBroker();
    await declareTopology(broker.url);
    const client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics, maxPending: 100 });
    await client.connect();
    await eventually(() => client.check() === undefined);
    const bench = new CallsBench(broker, client, metrics);
    await bench.startServer();
    return bench;
  }

  async startServer(prefetch = 50): Promise<void> {
    const connection = { url: this.broker.url, name: 'users' };
    this.server = await startUsersStub(
      { connection, prefetch: { commands: prefetch, queries: prefetch }, metrics: this.metrics },
      this.handlers,
    );
    await eventually(() => this.server?.check() === undefined);
  }

  /** No test inherits a handler. */
  reset(): void {
    Object.assign(this.handlers, { add: unexpected, authenticate: unexpected, exists: unexpected });
  }

  async stop(): Promise<void> {
    await this.client.close();
    await this.server?.close();
    await this.broker.drop();
  }
}
