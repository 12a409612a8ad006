import type { ConfirmChannel, GetMessage, Options } from 'amqplib';
import { Registry } from 'prom-client';
import type { ApiError } from '@app/contracts/error';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';

export const BODY: AddUsersRequest = { organizationId: 'o', users: [{ userId: 'u' }] };
/** Longer than any busy machine stands still. */
export const CALL = { apiKey: 'key', requestId: 'request-1', timeoutMs: 20_000 };
export const DEAD = 'users.commands.dead';
export const REFUSED = 'users.commands.refused';

export const unexpected = () => {
  throw new Error('unexpected');
};

/** The error of a call. @throws Error when the call does not fail */
export const failure = (call: Promise<unknown>): Promise<ApiError> =>
  call.then(unexpected, (error: unknown) => error as ApiError);

type StubOptions = Omit<Parameters<typeof startUsersStub>[0], 'connection' | 'metrics'>;

/** A users service with the handlers of a test, a client of it, and a channel of another publisher, on a broker of their own. */
export class StubbedUsers {
  private constructor(
    readonly broker: DeclaredBroker,
    readonly client: RabbitClient,
    readonly server: RabbitServer,
    readonly metrics: Registry,
  ) {}

  static async start(handlers: UsersHandlers, options: StubOptions = {}): Promise<StubbedUsers> {
    const metrics = new Registry();
    const broker = await createDeclaredBroker();
    const client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics });
    await client.connect();
    const server = await startUsersStub({ ...options, connection: { url: broker.url, name: 'users' }, metrics }, handlers);
    await eventually(() => server.check() === undefined && client.check() === undefined);
    return new StubbedUsers(broker, client, server, metrics);
  }

  get channel(): ConfirmChannel {
    return this.broker.channel;
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.server.close();
    await this.broker.drop();
  }

  publish(body: unknown, options: Options.Publish = {}, routingKey = 'users.add.v1'): void {
    this.channel.publish('commands', routingKey, Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)), {
      persistent: true,
      headers: { 'x-api-key': 'key' },
      ...options,
    });
  }

  next(queue: string): Promise<GetMessage> {
    return eventually(() => this.channel.get(queue, { noAck: true })) as Promise<GetMessage>;
  }

  async expectEverythingWorks(): Promise<void> {
    expect((await this.client.call(AddUsers, BODY, CALL)).parse()).toEqual({});
  }
}
