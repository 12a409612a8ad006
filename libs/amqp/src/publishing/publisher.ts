import type { ConfirmChannel, Message } from 'amqplib';
import type { RabbitChannel } from '../connection/channel';
import { InFlight } from './in-flight';
import { leaveNode } from '../connection/leave-node';
import { refusalOf } from '../connection/opened-channel';
import { QueueConfirms } from './queue-confirms';
import { writeMessage, type Properties } from '../messages/write-message';

/** Most bytes written and not confirmed: a broker that stops reading must not fill the memory of this process. */
const MAX_UNCONFIRMED_BYTES = 64 * 1024 * 1024;

/**
 * `confirmed`: the broker has it. `returned` and `nacked`: no queue has it, and none will. `lost`: the channel ended first, so the broker
 * may have it. `forbidden`: the account may not publish it, and the channel ended.
 */
export type PublishOutcome = 'confirmed' | 'returned' | 'nacked' | 'forbidden' | 'lost';

/**
 * Longest time without a confirm of a quorum queue, while there is something to confirm. As long as for a silent node: with Khepri a node in a minority
 * stays connected, sends heartbeats, and confirms no message to a quorum queue.
 */
const UNCONFIRMED_MS = 8000;

/** The message of amqplib's error. */
const NACKED = 'message nacked';

/** The message was not written to the connection. */
export class NotWritten extends Error {}

export interface Publication {
  exchange: string;
  routingKey: string;
  body: Buffer;
  /** `correlationId` must be unique among the messages in flight: it identifies a returned message. */
  properties: Properties & { correlationId: string };
  /** Whether the broker returns a message that no queue is bound for. Default true. */
  mandatory?: boolean;
  /**
   * Whether a quorum queue of this system takes it: when that confirms nothing, the process leaves the node. Default false. A queue on one node
   * that is away, or a listener's queue, says nothing about the node of this process.
   */
  toQuorumQueue?: boolean;
}

/** A quorum queue, as one exchange and routing key reach it. */
interface Target {
  readonly confirms: QueueConfirms;
  /** Nodes that were left because of it since its last confirm. Another node does not help a queue that has lost its majority. */
  leftNodes: number;
}

/** Publishes messages and waits for the broker's confirms. */
export class ConfirmedPublisher {
  private readonly unconfirmed = new InFlight<(outcome: PublishOutcome) => void>();
  private unconfirmedBytes = 0;
  private readonly targets = new Map<string, Target>();
  private watching?: NodeJS.Timeout;
  readonly unconfirmedMs: number;

  constructor(private readonly channel: RabbitChannel<ConfirmChannel>) {
    this.unconfirmedMs = channel.connection.options.unconfirmedMs ?? UNCONFIRMED_MS;
    channel.on('open', (opened) => opened.on('return', (message) => this.onReturn(message)));
    let wasBlocked = false;
    channel.connection.on('state', (state) => {
      // The broker took nothing until now, so the time before says nothing about its queues.
      if (wasBlocked && state === 'up') for (const { confirms } of this.targets.values()) confirms.restart();
      wasBlocked = state === 'blocked';
    });
  }

  /** @throws NotWritten at once when the broker cannot take the message now, or AMQP cannot encode it (then with a `cause`) */
  async publish(publication: Publication): Promise<PublishOutcome> {
    const { exchange, routingKey, body, properties, mandatory = true, toQuorumQueue = false } = publication;
    const { current } = this.channel;
    const problem = this.channel.check();
    if (problem || !current) throw new NotWritten(problem);
    if (this.unconfirmedBytes + body.length > MAX_UNCONFIRMED_BYTES) throw new NotWritten('the broker does not keep up');
    const { correlationId } = properties;
    const target =
      toQuorumQueue && this.channel.connection.nodes.count > 1 ? this.watched(`${exchange} ${routingKey}`) : undefined;

    const outcome = new Promise<PublishOutcome>((resolve) => {
      const onConfirm = (error: Error | null) => {
        this.unconfirmed.take(correlationId);
        this.unconfirmedBytes -= body.length;
        if (!error && target) target.leftNodes = 0;
        const nacked = error?.message === NACKED;
        if (nacked) this.channel.connection.observer.nacked(exchange);
        resolve(!error ? 'confirmed' : nacked ? 'nacked' : isForbidden(current, exchange, routingKey) ? 'forbidden' : 'lost');
      };
      try {
        writeMessage(current, { exchange, routingKey, mandatory }, properties, body, onConfirm);
      } catch (error) {
        throw new NotWritten((error as Error).message, { cause: error });
      }
      this.unconfirmedBytes += body.length;
      // The broker sends a return before the confirm. Resolving twice has no effect.
      this.unconfirmed.set(correlationId, resolve);
    });
    return target ? target.confirms.during(() => outcome) : outcome;
  }

  private watched(name: string): Target {
    let target = this.targets.get(name);
    if (!target) this.targets.set(name, (target = { confirms: new QueueConfirms(), leftNodes: 0 }));
    this.watchConfirms();
    return target;
  }

  private watchConfirms(afterMs = this.unconfirmedMs): void {
    // After the poll phase: a process that stood still may have confirms in its socket that it has not read yet.
    this.watching ??= setTimeout(() => setImmediate(() => this.lookAtConfirms()), afterMs).unref();
  }

  private lookAtConfirms(): void {
    this.watching = undefined;
    const { connection } = this.channel;
    const waiting = [...this.targets.values()].filter(({ confirms }) => confirms.silentMs > 0);
    if (waiting.length === 0) return;
    const silent = waiting.filter(({ confirms }) => confirms.silentMs >= this.unconfirmedMs);
    // A node that is short of memory or disk says so, and the others are, too.
    if (connection.state === 'up' && silent.some(({ leftNodes }) => leftNodes < connection.nodes.count)) {
      for (const target of silent) target.leftNodes++;
      leaveNode(connection.address, `a quorum queue confirmed nothing for ${this.unconfirmedMs / 1000} s`);
    }
    const others = waiting.filter((target) => !silent.includes(target)).map(({ confirms }) => confirms.silentMs);
    this.watchConfirms(Math.max(0, this.unconfirmedMs - Math.max(0, ...others)));
  }

  private onReturn({ fields, properties }: Message): void {
    this.channel.connection.observer.returned(fields.exchange);
    this.unconfirmed.get(String(properties.correlationId))?.('returned');
  }
}

/** Waits until the broker has answered all messages of a channel, or the channel ends. The wait of amqplib ends with the first refusal. */
export async function allAnswered(channel: ConfirmChannel): Promise<void> {
  const isRefusal = (error: Error) => error.message === NACKED;
  let isRefused = true;
  while (isRefused) isRefused = await channel.waitForConfirms().then(() => false, isRefusal);
}

/** Permissions belong to the account: all unconfirmed messages with this exchange or this routing key were refused. */
function isForbidden(channel: ConfirmChannel, exchange: string, routingKey: string): boolean {
  const refusal = refusalOf(channel)?.message;
  return [`exchange '${exchange}'`, `topic '${routingKey}'`].some((what) => refusal?.includes(`access to ${what}`));
}
