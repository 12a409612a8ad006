import { Logger } from '@nestjs/common';
import type { Channel, ConfirmChannel } from 'amqplib';
import type { ErrorBody } from '@app/contracts/error';
import type { ServiceName } from '@app/contracts/message';
import { INTERNAL, type Decision } from './ack-policy';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { about, type Delivery } from '../delivery/delivery';
import type { HeldDeliveries } from './held-deliveries';
import { LetterQuota } from './letter-quota';
import type { TransportMetrics } from '../metrics';
import { ConfirmedPublisher } from '@app/amqp/publishing/publisher';
import { checkQuorum, keepChecking } from '@app/amqp/publishing/quorum-check';
import { encodeReply, type EncodedReply } from '@app/amqp/messages/reply-format';
import { HIGH_WATER_MARK, LARGE_REPLY_BYTES, ReplyBatcher } from './reply-batcher';
import { Republisher } from './republisher';
import { endProcess } from '../spans';
import { QUORUM_CHECK } from '../topology/topology';

/** When a letter of a refused command may be written. */
export interface LetterTurns {
  run<T>(delivery: Delivery, write: () => Promise<T>): Promise<T>;
}

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
  private readonly republisher: Republisher;
  private readonly stopChecking: () => void;
  private readonly quota = new LetterQuota();

  /**
   * @param connection for publishing only: a blocked one must not stop the consumers
   * @param heldDeliveries counts the deliveries that cannot be republished for now
   */
  constructor(
    service: ServiceName,
    connection: RabbitConnection,
    private readonly metrics: TransportMetrics,
    heldDeliveries: HeldDeliveries,
    private readonly letterTurns: LetterTurns,
  ) {
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
    const publisher = new ConfirmedPublisher(this.confirms);
    const { username: account } = connection;
    this.republisher = new Republisher({ service, account, publisher, heldDeliveries, closing: this.closing.signal });
    this.stopChecking = keepChecking(publisher, connection, QUORUM_CHECK);
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
        delivery.letGoOfBody();
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
        if (!(await this.republisher.publish(delivery, decision))) return;
        // It may end this process at once, and an ack that is lost then makes a second one of it.
        await delivery.ackForGood();
        return settled('suspect');
      case 'retryThenAck':
      case 'deadThenAck': {
        const outcome = decision.do === 'retryThenAck' ? 'retried' : 'dead';
        if (!(await this.republisher.publish(delivery, decision))) return;
        if (outcome === 'dead') this.logDeath(delivery, decision.error);
        return settled(outcome, decision.error.status);
      }
      case 'refuseThenAck': {
        const { status } = decision.error;
        const admitted = await this.quota.admits(delivery, decision.stub);
        if (admitted && decision.stub) delivery.keepStub();
        const write = async () => !this.republisher.isOver(delivery) && this.republisher.publish(delivery, decision);
        const kept = admitted && (await this.letterTurns.run(delivery, write));
        if (kept) this.logDeath(delivery, decision.error);
        else if (admitted && this.republisher.isOver(delivery)) return;
        else this.metrics.lettersDropped.inc();
        return settled(kept ? 'refused' : 'refused_dropped', status);
      }
    }
  }

  /** One line for each dead letter, because nobody waits for an answer. The quota of its publisher bounds their number. */
  private logDeath(delivery: Delivery, { status, message: reason }: ErrorBody): void {
    this.logger.warn({ msg: 'a message became a dead letter', status, reason, ...about(delivery) });
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
}

const replyChannel = (connection: RabbitConnection, name: string): RabbitChannel<Channel> =>
  new RabbitChannel(connection, {
    name,
    open: (model) => model.createChannel({ highWaterMark: HIGH_WATER_MARK }),
    setup: (channel) => checkExchanges(channel, ['replies']),
    // An answer shows that the broker has every reply: amqplib may write the end of the connection before them.
    drain: (channel) => checkExchanges(channel, ['replies']),
  });
