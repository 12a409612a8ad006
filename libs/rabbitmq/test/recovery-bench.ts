import { Registry } from 'prom-client';
import { AddUsers } from '@app/contracts/users.add';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { PrivateServer } from '@app/testing/system/private-server';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { BODY } from './stubbed-users';

/** Longer than a busy machine takes to end a connection and to open the next one. */
export const CALL = { apiKey: 'key', requestId: 'r', timeoutMs: 20_000 };

/** A client and a users service, on a broker that a test may break. */
export class RecoveryBench {
  readonly handlers = {} as UsersHandlers;
  readonly metrics = new Registry();
  client: RabbitClient;
  server: RabbitServer;

  private constructor(readonly broker: PrivateServer) {}

  static async start(): Promise<RecoveryBench> {
    const bench = new RecoveryBench(await PrivateServer.start('rabbitmq', '--management'));
    try {
      await bench.connect();
      return bench;
    } catch (error) {
      await bench.stop();
      throw error;
    }
  }

  private async connect(): Promise<void> {
    const { broker, handlers, metrics } = this;
    await declareTopology(broker.url);
    this.client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics });
    await this.client.connect();
    this.server = await startUsersStub({ connection: { url: broker.url, name: 'users' }, metrics }, handlers);
    await this.ready();
  }

  async stop(): Promise<void> {
    await this.client?.close();
    await this.server?.close();
    await this.broker.remove();
  }

  async ready(): Promise<void> {
    await eventually(() => this.server.check() === undefined && this.client.check() === undefined);
  }

  /** Ends the connections whose name begins so. */
  async killConnections(name: string): Promise<void> {
    await eventually(() => this.broker.management.killConnections(name));
  }

  /** Calls a command whose handler runs until `letGo` is called. */
  async running(timeoutMs = CALL.timeoutMs) {
    let runs = 0;
    const { open: letGo, opened: gone } = gate();
    this.handlers.add = async (_, { redelivered }) => {
      runs++;
      await gone;
      return { redelivered };
    };
    const call = this.client.call(AddUsers, BODY, { ...CALL, timeoutMs });
    call.catch(() => undefined);
    await eventually(() => runs === 1);
    return { call, letGo, runs: () => runs };
  }

  async expectCallsWork(): Promise<void> {
    this.handlers.add = () => ({ fine: true });
    await this.ready();
    expect((await this.client.call(AddUsers, BODY, CALL)).parse()).toEqual({ fine: true });
  }
}
