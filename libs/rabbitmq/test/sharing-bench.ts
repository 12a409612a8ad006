import { randomUUID } from 'node:crypto';
import type { ConfirmChannel, ConsumeMessage, Options } from 'amqplib';
import { Registry } from 'prom-client';
import { commandMessage } from '@app/amqp/messages/command-format';
import type { ApiError } from '@app/contracts/error';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { callQueue } from '../src/topology/topology';

export const CALLS = callQueue('users');
export const bodyOf = (organizationId: string): AddUsersRequest => ({ organizationId, users: [{ userId: 'u' }] });

/** A client whose commands share messages, a stub of the users service, and a channel of the test itself. */
export class SharingBench {
  client!: RabbitClient;
  clientMetrics!: Registry;
  server?: RabbitServer;
  handlers!: UsersHandlers;
  private metrics!: Registry;
  /** Replies to the messages that the test publishes itself. */
  replies: ConsumeMessage[] = [];
  /** Copies of the messages of the client. */
  published: ConsumeMessage[] = [];

  private constructor(
    readonly broker: DeclaredBroker,
    readonly replyTo: string,
  ) {}

  static async start(): Promise<SharingBench> {
    const broker = await createDeclaredBroker();
    const { channel } = broker;
    const { queue: replyTo } = await channel.assertQueue('', { exclusive: true });
    const bench = new SharingBench(broker, replyTo);
    await channel.bindQueue(replyTo, 'replies', replyTo);
    await channel.consume(replyTo, (message) => void (message && bench.replies.push(message)), { noAck: true });
    const { queue: copies } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(copies, 'calls', AddUsers.pattern);
    await channel.consume(copies, (message) => void (message && bench.published.push(message)), { noAck: true });
    await bench.startClient();
    return bench;
  }

  async stop(): Promise<void> {
    await this.client.close();
    await this.broker.drop();
  }

  beforeEach(): void {
    [this.replies, this.published] = [[], []];
    this.metrics = new Registry();
    this.handlers = { add: () => ({}), authenticate: () => ({}), exists: () => ({}) };
  }

  async afterEach(): Promise<void> {
    await this.server?.close();
    this.server = undefined;
    await this.channel.purgeQueue(CALLS);
  }

  get channel(): ConfirmChannel {
    return this.broker.channel;
  }

  get account(): string {
    return new URL(this.broker.url).username;
  }

  /** A new one, because a client sends commands alone for a minute after a consumer could not read several. */
  async startClient(): Promise<void> {
    this.clientMetrics = new Registry();
    this.client = new RabbitClient({ connection: { url: this.broker.url, name: 'gateway' }, metrics: this.clientMetrics });
    await this.client.connect();
    await eventually(() => this.client.check() === undefined);
  }

  async startServer(url = this.broker.url): Promise<void> {
    const options = { connection: { url, name: 'users' }, metrics: this.metrics, drainTimeoutMs: 200, crashPauseMs: 0 };
    this.server = await startUsersStub(options, this.handlers);
    await eventually(() => this.server?.check() === undefined);
  }

  call(organizationId: string, differences: { apiKey?: string; idempotencyKey?: string; messageId?: string } = {}) {
    return this.client
      .call(AddUsers, bodyOf(organizationId), { apiKey: 'key', requestId: organizationId, timeoutMs: 20_000, ...differences })
      .then(
        (answer) => answer.parse(),
        (error: unknown) => (error as ApiError).status,
      );
  }

  async publish(exchange: string, body: Buffer, properties: Options.Publish): Promise<void> {
    this.channel.publish(exchange, AddUsers.pattern, body, properties);
    await this.channel.waitForConfirms();
  }

  /** Publishes one message with a command for each organization. */
  async publishShared(organizationIds: readonly string[], exchange = 'calls'): Promise<void> {
    const requests = organizationIds.map((id) => ({
      operation: AddUsers,
      body: Buffer.from(JSON.stringify(bodyOf(id))),
      options: { apiKey: 'key', requestId: id, timeoutMs: 20_000, messageId: id },
      correlationId: id,
      deadline: performance.now() + 20_000,
    }));
    const sender = { appId: 'test', userId: this.account };
    const { body, properties } = commandMessage(requests, randomUUID(), sender, this.replyTo);
    await this.publish(exchange, body, properties);
  }

  /** The remains of a killed consumer. */
  async crash(): Promise<void> {
    const victim = await this.broker.model.createChannel();
    await new Promise((resolve) => void victim.consume(CALLS, resolve));
    await victim.close();
    await eventually(async () => (await this.channel.checkQueue(CALLS)).messageCount === 1);
  }
}
