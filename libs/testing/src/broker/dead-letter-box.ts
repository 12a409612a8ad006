import type { ConfirmChannel, GetMessage, Options } from 'amqplib';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { openConnection } from '@app/amqp/connection/open-connection';
import type { AuditLine } from '@app/rabbitmq-admin/dead-letters/audit';
import { readCommandLine } from '@app/rabbitmq-admin/dead-letters/command-line';
import type { Bounds } from '@app/rabbitmq-admin/dead-letters/opened-queue';
import { run } from '@app/rabbitmq-admin/dead-letters/run';
import { QUEUES } from '@app/rabbitmq/topology/topology';
import { createDeclaredBroker, type DeclaredBroker } from './broker';
import { eventually } from '../eventually';

export const DEAD = 'users.commands.dead';
export const CRASHED = 'users.commands.crashed';
export const REFUSED = 'users.commands.refused';
/** Queue of replayed dead letters. */
export const AGAIN = 'users.again';
export const BODY = { organizationId: 'o', users: [{ userId: 'u' }] };

export interface Said {
  done: boolean;
  printed: string[];
  noted: string[];
  audited: AuditLine[];
}

/** Dead-letter queues and queues of replays. */
const LOOKED_AT = /\.(dead|crashed|refused|again)$/;

/** Parts of a dead letter: its id, headers that differ from those of a service, properties, body. */
export type Burial = [id: string | undefined, headers?: Record<string, unknown>, options?: Options.Publish, body?: unknown];

/** A box for the tests of a file. Each test begins with an empty one. */
export function deadLetterBox(): DeadLetterBox {
  const box = new DeadLetterBox();
  beforeAll(() => box.open());
  beforeEach(() => box.empty());
  afterAll(() => box.drop());
  return box;
}

/** A broker with dead letters in its queues, and the tool that inspects them. */
export class DeadLetterBox {
  broker: DeclaredBroker;
  /** Broker account of this box and the tool. */
  account: string;

  async open(): Promise<void> {
    this.broker = await createDeclaredBroker();
    this.account = parseBrokerUrl(this.broker.url).username;
  }

  get vhost(): string {
    return new URL(this.broker.url).pathname.slice(1);
  }

  get channel(): ConfirmChannel {
    return this.broker.channel;
  }

  async drop(): Promise<void> {
    await this.broker?.drop();
  }

  async empty(): Promise<void> {
    for (const { name } of QUEUES) if (LOOKED_AT.test(name)) await this.channel.purgeQueue(name);
  }

  /** Runs the tool on its own connection. Its trusted service accounts are the account of the box and `service`. */
  async tool(line: string, options: { signal?: AbortSignal; bounds?: Bounds; onAudit?: () => void } = {}): Promise<Said> {
    const invocation = readCommandLine(line.split(' '));
    if (!invocation) throw new Error('the command line only prints the help');
    const said: Said = { done: false, printed: [], noted: [], audited: [] };
    const own = await openConnection({ url: this.broker.url, name: 'dead letters' });
    try {
      said.done = await run(own, invocation, {
        print: (text) => void said.printed.push(text),
        note: (text) => void said.noted.push(text),
        audit: (line) => {
          said.audited.push(line);
          options.onAudit?.();
        },
        accounts: { own: this.account, services: new Set([this.account, 'service']) },
        signal: options.signal ?? new AbortController().signal,
        ...(options.bounds && { bounds: options.bounds }),
      });
    } finally {
      await own.close();
    }
    return said;
  }

  /** The dead letters as printed with `--json`. */
  async listed(line: string): Promise<Record<string, unknown>[]> {
    const { printed } = await this.tool(`${line} --json`);
    return (JSON.parse(printed[0]) as { deadLetters: Record<string, unknown>[] }).deadLetters;
  }

  /** Publishes dead letters with the headers of a service, and waits until the queue counts them. */
  async bury(letters: Burial[], queue = DEAD): Promise<void> {
    for (const [messageId, headers = {}, options = {}, body = BODY] of letters) {
      this.channel.publish('dead', queue, Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)), {
        persistent: true,
        messageId,
        contentType: 'application/json',
        userId: this.account,
        ...options,
        headers: {
          'x-api-key': 'key',
          'x-routing-key': 'users.add.v1',
          'x-attempt': 1,
          'x-first-failed-at': Date.parse('2026-01-01T00:00:00Z'),
          'x-dead-status': 'NOT_FOUND',
          'x-dead-reason': 'No such organization.',
          ...headers,
        },
      });
    }
    await this.channel.waitForConfirms();
    await eventually(async () => (await this.ready(queue)) === letters.length);
  }

  /** Publishes one message with a new account that may publish anything. The broker checks its `user_id`. */
  async publishAs(account: string, exchange: string, routingKey: string, options: Options.Publish): Promise<void> {
    await this.broker.management.put(`users/${account}`, { password: 'secret', tags: '' });
    const all = { configure: '^$', write: '.*', read: '^$' };
    await this.broker.management.put(`permissions/${this.vhost}/${account}`, all);
    const url = new URL(this.broker.url);
    url.username = account;
    url.password = 'secret';
    const model = await openConnection({ url: url.href, name: account });
    const channel = await model.createConfirmChannel();
    channel.publish(exchange, routingKey, Buffer.from('{}'), { persistent: true, userId: account, ...options });
    await channel.waitForConfirms();
    await model.close();
  }

  async ready(queue: string): Promise<number> {
    return (await this.channel.checkQueue(queue)).messageCount;
  }

  /** Takes all messages from a queue. */
  async take(queue: string): Promise<GetMessage[]> {
    const all: GetMessage[] = [];
    for (;;) {
      const message = await this.channel.get(queue, { noAck: true });
      if (!message) return all;
      delete message.properties.headers?.['x-delivery-count'];
      all.push(message);
    }
  }

  async takeIds(queue: string): Promise<string[]> {
    return (await this.take(queue)).map(({ properties }) => properties.messageId as string);
  }
}

/** `count` burials with ids in order. */
export const many = (count: number): [string][] =>
  Array.from({ length: count }, (_, index) => [`m-${String(index).padStart(3, '0')}`]);
