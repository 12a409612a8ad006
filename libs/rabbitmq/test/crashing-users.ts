import type { ConfirmChannel, GetMessage, Options } from 'amqplib';
import { Registry } from 'prom-client';
import type { AddUsersRequest } from '@app/contracts/users.add';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import type { RabbitServer } from '../src/server/rabbit.server';
import { againQueue, commandQueue, crashedQueue, suspectQueue } from '../src/topology/topology';

export const COMMANDS = commandQueue('users', 0);
export const AGAIN = againQueue('users');
export const SUSPECTS = suspectQueue('users');
export const CRASHED = crashedQueue('users');

/** Long enough for a busy machine to publish something while a command waits. */
export const PAUSE_MS = 3000;

const bodyOf = (organizationId: string) =>
  Buffer.from(JSON.stringify({ organizationId, users: [{ userId: 'u' }] } satisfies AddUsersRequest));

/** A service for the tests of a file. Each test ends without a server, with the first handlers and empty queues. */
export function crashingUsers(): CrashingUsers {
  const users = new CrashingUsers();
  beforeAll(() => users.connect());
  afterEach(() => users.tidyUp());
  afterAll(() => users.drop());
  return users;
}

/**
 * A users service that tests start again and again, and whose consumers end with their deliveries. For the broker, a channel closed with an unsettled
 * delivery is the same as a crash.
 */
class CrashingUsers {
  server?: RabbitServer;
  /** Of the server that runs, or ran last. */
  metrics = new Registry();
  handlers: UsersHandlers = answering();

  private broker!: DeclaredBroker;

  async connect(): Promise<void> {
    this.broker = await createDeclaredBroker();
  }

  get channel(): ConfirmChannel {
    return this.broker.channel;
  }

  /** Broker account of the service. */
  get account(): string {
    return new URL(this.broker.url).username;
  }

  async drop(): Promise<void> {
    await this.broker?.drop();
  }

  async tidyUp(): Promise<void> {
    jest.restoreAllMocks();
    await this.stop();
    this.handlers = answering();
    for (const queue of [COMMANDS, AGAIN, SUSPECTS, CRASHED]) await this.channel.purgeQueue(queue);
  }

  /** @param crashPauseMs how long a delivery waits that may have ended a process */
  async start(crashPauseMs = 0): Promise<void> {
    // A wait takes up to twice as long by chance.
    jest.spyOn(Math, 'random').mockReturnValue(0);
    this.metrics = new Registry();
    const connection = { url: this.broker.url, name: 'users' };
    const options = { connection, metrics: this.metrics, drainTimeoutMs: 200, crashPauseMs };
    this.server = await startUsersStub(options, this.handlers);
    await eventually(() => this.server?.check() === undefined);
  }

  async stop(): Promise<void> {
    await this.server?.close();
    this.server = undefined;
  }

  async publish(organizationId: string, options: Options.Publish = {}): Promise<void> {
    const headers = { 'x-api-key': 'key' };
    this.channel.publish('commands', 'users.add.v1', bodyOf(organizationId), { persistent: true, headers, ...options });
    await this.channel.waitForConfirms();
  }

  /** Publishes a command to the queue of the suspects, as a service does. */
  async publishSuspect(organizationId: string, options: Options.Publish = {}): Promise<void> {
    const headers = { 'x-api-key': 'key', 'x-routing-key': 'users.add.v1', ...(options.headers as object) };
    this.channel.publish('retry', SUSPECTS, bodyOf(organizationId), { persistent: true, ...options, headers });
    await this.channel.waitForConfirms();
  }

  /** Lets consumers take all messages of the queue and end without settling them. */
  async crash(queue: string, times: number): Promise<void> {
    for (let time = 0; time < times; time++) {
      const messages = await this.messagesIn(queue);
      const victim = await this.broker.model.createChannel();
      let delivered = 0;
      await victim.consume(queue, () => delivered++);
      await eventually(() => delivered === messages);
      await victim.close();
      await eventually(async () => (await this.messagesIn(queue)) === messages || (await this.messagesIn(CRASHED)) > 0);
    }
  }

  async messagesIn(queue: string): Promise<number> {
    return (await this.channel.checkQueue(queue)).messageCount;
  }

  /** Waits for the only letter of a command that was given up, and takes it. */
  async takeLetter(): Promise<GetMessage> {
    await eventually(async () => (await this.messagesIn(CRASHED)) === 1);
    return (await this.channel.get(CRASHED, { noAck: true })) as GetMessage;
  }

  /** Whether a suspect waits that has ended a process. */
  async isWaiting(): Promise<boolean> {
    return (await metricValue(this.metrics, 'rabbitmq_deliveries_in_flight', { queue: AGAIN })) === 1;
  }

  /** Deliveries of the server that runs, by their outcome. */
  settled(outcome: string): Promise<number> {
    return metricValue(this.metrics, 'rabbitmq_deliveries_total', { outcome });
  }
}

const answering = (): UsersHandlers => ({ add: () => ({}), authenticate: () => ({}), exists: () => ({}) });
