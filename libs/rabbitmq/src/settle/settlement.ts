import { Logger } from '@nestjs/common';
import type { Channel, ConfirmChannel } from 'amqplib';
import type { ErrorBody } from '@app/contracts/error';
import type { ServiceName } from '@app/contracts/message';
import { INTERNAL, type Decision } from './ack-policy';
import { Backoff } from '@app/amqp/connection/backoff';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { about, type Delivery } from '../delivery/delivery';
import type { HeldDeliveries } from './held-deliveries';
import { LetterQuota } from './letter-quota';
import type { TransportMetrics } from '../metrics';
import { ConfirmedPublisher, NotWritten, type Publication, type PublishOutcome } from '@app/amqp/publishing/publisher';
import { checkQuorum, keepChecking } from '@app/amqp/publishing/quorum-check';
import { encodeReply, type EncodedReply } from '@app/amqp/messages/reply-format';
import { HIGH_WATER_MARK, LARGE_REPLY_BYTES, ReplyBatcher } from './reply-batcher';
import { republication } from './republication';
import { endProcess } from '../spans';
import { deadQueue, QUORUM_CHECK, refusedQueue, retryQueue, suspectQueue } from '../topology/topology';

/** How long a refused command is held while the broker does not take its dead letter, in milliseconds. Others are held without limit. */
const HOLD_REFUSED_MS = 5 * 60_000;
/** Queue limits do not count headers. A refused dead letter with more header text (as JSON) keeps only the headers that are understood. */
const MAX_HEADER_CHARACTERS = 4096;

type Tried = PublishOutcome | 'unencodable' | 'not written';
type Republished = Extract<Decision, { do: 'retryThenAck' | 'deadThenAck' | 'refuseThenAck' | 'suspectThenAck' }>;

/** Carries out what the ack policy decided: publishes, then acknowledges. */
export class Settlement {
  private readonly logger = new Logger('RabbitMQ');
  private readonly closing = new AbortController();
  private readonly replyChannel: RabbitChannel<Channel>;
  /** Channels of a connection take turns to write, so that small replies do not wait for the pages of 4 MiB that wait for the socket. */
  private readonly largeReplyChannel: RabbitChannel<Channel>;
  private readonly replies: ReplyBatcher;
  private readonly largeReplies: ReplyBatcher;
  private readonly confirms: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;
  private readonly stopChecking: () => void;
  private readonly quota = new LetterQuota();
  private readonly account: string;

  /**
   * @param connection for publishing only: a blocked one must not stop the consumers
   * @param heldDeliveries counts the deliveries that cannot be republished for now
   */
  constructor(
    private readonly service: ServiceName,
    connection: RabbitConnection,
    private readonly metrics: TransportMetrics,
    private readonly heldDeliveries: HeldDeliveries,
  ) {
    this.account = connection.username;
    this.replyChannel = replyChannel(connection, 'replies');
    this.largeReplyChannel = replyChannel(connection, 'large replies');
    this.replies = new ReplyBatcher(this.replyChannel);
    this.largeReplies = new ReplyBatcher(this.largeReplyChannel);
    this.confirms = new RabbitChannel(connection, {
      name: 'retries and dead letters',
      open: (model) => model.createConfirmChannel(),
      setup: async (channel) => {
        await checkExchanges(channel, ['retry', 'dead']);
        await checkQuorum(channel, connection, QUORUM_CHECK);
      },
      drain: (channel) => channel.waitForConfirms(),
    });
    this.publisher = new ConfirmedPublisher(this.confirms);
    this.stopChecking = keepChecking(this.publisher, connection, QUORUM_CHECK);
  }

  check(): string | undefined {
    return this.replyChannel.check() ?? this.largeReplyChannel.check() ?? this.confirms.check();
  }

  /** From now on no delivery waits for the broker to come back. */
  stopWaiting(): void {
    this.closing.abort();
  }

  /** Flushes the publications and closes the channels. */
  async close(): Promise<void> {
    this.stopChecking();
    await Promise.all([this.replyChannel.close(), this.largeReplyChannel.close(), this.confirms.close()]);
  }

  /** @param knownPattern label of the metric: only patterns with a handler, because the number of others is unlimited */
  async settle(delivery: Delivery, decision: Exclude<Decision, { do: 'hold' }>, knownPattern: string): Promise<void> {
    const settled = (outcome: string, status = '') => {
      delivery.ack();
      this.metrics.deliveries.inc({ pattern: knownPattern, outcome, status });
      endProcess(delivery.context, outcome, status);
      this.logger.debug({ msg: 'settled', outcome, ...(status && { status }), ...about(delivery) });
    };
    switch (decision.do) {
      case 'ack':
        return settled(decision.because);
      case 'ackThenReply':
      case 'replyThenAck': {
        // If the broker delivers it again, the answer is that of the redelivery.
        if (decision.do === 'ackThenReply' && !(await delivery.ackForGood())) return;
        const encoded = this.encode(delivery, decision.reply);
        delivery.encoded(encoded.body.length);
        const { status, sent } = await this.reply(delivery, encoded);
        return settled(sent ? 'replied' : 'reply_lost', status);
      }
      case 'suspectThenAck':
        this.logger.warn({
          msg: 'a command was delivered several times and never settled: it is handled alone',
          ...about(delivery),
        });
        return void ((await this.republish(delivery, decision)) && settled('suspect'));
      case 'retryThenAck':
      case 'deadThenAck': {
        const outcome = decision.do === 'retryThenAck' ? 'retried' : 'dead';
        if (!(await this.republish(delivery, decision))) return;
        if (outcome === 'dead') this.logDeath(delivery, decision.error);
        return settled(outcome, decision.error.status);
      }
      case 'refuseThenAck': {
        const { status } = decision.error;
        const admitted = await this.quota.admits(delivery, decision.stub);
        const kept = admitted && (await this.republish(delivery, decision, HOLD_REFUSED_MS));
        if (kept) this.logDeath(delivery, decision.error);
        else if (admitted && this.isOver(delivery)) return;
        else this.metrics.lettersDropped.inc();
        return settled(kept ? 'refused' : 'refused_dropped', status);
      }
    }
  }

  /** One line for each dead letter, because nobody waits for an answer. The quota of its publisher bounds their number. */
  private logDeath(delivery: Delivery, { status, message: reason }: ErrorBody): void {
    const { userId: publisher } = delivery.context;
    this.logger.warn({ msg: 'a message became a dead letter', status, reason, publisher, ...about(delivery) });
  }

  private encode({ context }: Delivery, reply: Parameters<typeof encodeReply>[0]): EncodedReply {
    try {
      return encodeReply(reply);
    } catch (error) {
      const { requestId, pattern } = context;
      this.logger.error({ msg: 'the result of a handler is not JSON', requestId, pattern, stack: (error as Error).stack });
      return encodeReply({ error: INTERNAL });
    }
  }

  private async reply({ address, context, patience }: Delivery, reply: EncodedReply) {
    let sent = false;
    const until = performance.now() + patience;
    const isLarge = reply.body.length > LARGE_REPLY_BYTES;
    if (address && (await (isLarge ? this.largeReplyChannel : this.replyChannel).whenReady(patience))) {
      try {
        sent = await (isLarge ? this.largeReplies : this.replies).publish(address, reply, until);
      } catch (error) {
        this.logger.error({
          msg: 'a reply could not be published',
          requestId: context.requestId,
          reason: (error as Error).message,
        });
      }
    }
    return { status: reply.status, sent };
  }

  /**
   * Publishes the message to another queue. While that fails the delivery is held: a requeue may count towards the delivery limit.
   *
   * @returns true when the broker has confirmed it, so that this delivery can be acknowledged. False when the channel or the process ends,
   *   which requeues the delivery, and after `holdMs` milliseconds
   */
  private async republish(delivery: Delivery, decision: Republished, holdMs = Infinity): Promise<boolean> {
    const until = performance.now() + holdMs;
    const backoff = new Backoff(500, 5000);
    let held = false;
    try {
      for (;;) {
        const outcome = await this.tryPublish(delivery, decision);
        if (outcome === 'confirmed') return true;
        const { exchange, routingKey } = this.publicationOf(delivery, decision, false);
        const line = { msg: 'publishing again failed', requestId: delivery.context.requestId, exchange, routingKey, outcome };
        // These have causes outside this service (a message of a publisher, a lost connection) and are retried: a warning is enough.
        if (['unencodable', 'not written', 'lost'].includes(outcome)) this.logger.warn(line);
        else if (!held) this.logger.error(line);
        if (!held) this.heldDeliveries.change(delivery.queue, 1);
        held = true;
        await backoff.wait(this.closing.signal);
        if (this.isOver(delivery) || performance.now() > until) return false;
      }
    } finally {
      if (held) this.heldDeliveries.change(delivery.queue, -1);
    }
  }

  private isOver(delivery: Delivery): boolean {
    return this.closing.signal.aborted || delivery.isForgotten;
  }

  private publicationOf(delivery: Delivery, decision: Republished, withHeaders: boolean): Publication {
    const { service, account } = this;
    const { attempt } = delivery.context;
    const common = { account, attempt, withHeaders };
    switch (decision.do) {
      case 'suspectThenAck':
        return republication(delivery, { exchange: 'retry', routingKey: suspectQueue(service) }, common);
      case 'retryThenAck': {
        const routingKey = retryQueue(service, decision.delay);
        return republication(delivery, { exchange: 'retry', routingKey }, { ...common, attempt: attempt + 1 });
      }
      case 'deadThenAck':
        return republication(delivery, { exchange: 'dead', routingKey: deadQueue(service) }, { ...common, dead: decision.error });
      case 'refuseThenAck': {
        const target = { exchange: 'dead', routingKey: refusedQueue(service) } as const;
        const { error: dead, stub } = decision;
        return republication(delivery, target, { ...common, dead, stub, withHeaders: withHeaders && hasFewHeaders(delivery) });
      }
    }
  }

  private async tryPublish(delivery: Delivery, decision: Republished, withHeaders = true): Promise<Tried> {
    try {
      return await this.publisher.publish(this.publicationOf(delivery, decision, withHeaders));
    } catch (error) {
      if (!(error instanceof NotWritten)) throw error;
      // At once: one publisher with many held letters would stop the queue for the others.
      if (error.cause && withHeaders) return this.tryPublish(delivery, decision, false);
      return error.cause ? 'unencodable' : 'not written';
    }
  }
}

const replyChannel = (connection: RabbitConnection, name: string): RabbitChannel<Channel> =>
  new RabbitChannel(connection, {
    name,
    open: (model) => model.createChannel({ highWaterMark: HIGH_WATER_MARK }),
    setup: (channel) => checkExchanges(channel, ['replies']),
    // An answer shows that the broker has every reply: amqplib may write the end of the connection before them.
    drain: (channel) => checkExchanges(channel, ['replies']),
  });

function hasFewHeaders({ message }: Delivery): boolean {
  try {
    return JSON.stringify(message.properties.headers ?? {}).length <= MAX_HEADER_CHARACTERS;
  } catch {
    // For example a 64-bit number (BigInt).
    return false;
  }
}
