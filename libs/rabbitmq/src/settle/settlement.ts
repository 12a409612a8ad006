import { Logger } from '@nestjs/common';
import type { ConfirmChannel } from 'amqplib';
import type { ServiceName } from '@app/contracts/message';
import { INTERNAL, type FinalDecision } from './ack-policy';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { about, type Delivery } from '../delivery/delivery';
import type { HeldDeliveries } from './held-deliveries';
import { LateCalls } from './late-calls';
import { LetterQuota } from './letter-quota';
import type { LetterTurns } from './letter-turns';
import type { TransportMetrics } from '../metrics';
import { allAnswered, ConfirmedPublisher } from '@app/amqp/publishing/publisher';
import { checkQuorum, keepChecking } from '@app/amqp/publishing/quorum-check';
import { encodeReply, type EncodedReply } from '@app/amqp/messages/reply-format';
import { LARGE_REPLY_BYTES, ReplyBatcher } from './reply-batcher';
import { PublisherLines } from './publisher-lines';
import { Republisher } from './republisher';
import { endProcess } from '../spans';
import { QUORUM_CHECK } from '../topology/topology';

interface SettlementOptions {
  service: ServiceName;
  /** See {@link RabbitServerOptions.confirmReplies}. */
  confirmReplies: boolean;
  metrics: TransportMetrics;
  /** Counts the deliveries that cannot be republished for now. */
  heldDeliveries: HeldDeliveries;
  letterTurns: LetterTurns;
}

/** Carries out what the ack policy decided: publishes, then acknowledges. */
export class Settlement {
  private readonly logger = new Logger('RabbitMQ');
  private readonly closing = new AbortController();
  private readonly confirmedReplies: ReplyBatcher;
  private readonly replies: ReplyBatcher;
  /** Channels of a connection take turns to write, so that small replies do not wait for the pages of 4 MiB that wait for the socket. */
  private readonly largeReplies: ReplyBatcher;
  private readonly channels: readonly Pick<RabbitChannel<ConfirmChannel>, 'check' | 'close'>[];
  private readonly republisher: Republisher;
  private readonly stopChecking: () => void;
  private readonly quota = new LetterQuota();
  private readonly late = new LateCalls();
  /** An outage that outlasts the retries ends in tens of thousands of letters within minutes. */
  private readonly deaths = new PublisherLines(
    'a message became a dead letter',
    'more messages of a publisher became dead letters',
  );

  /** @param connection for publishing only: a blocked one must not stop the consumers */
  constructor(
    connection: RabbitConnection,
    private readonly options: SettlementOptions,
  ) {
    const { service, confirmReplies, heldDeliveries } = options;
    this.confirmedReplies = new ReplyBatcher(connection, 'confirmed replies', confirmReplies);
    this.replies = new ReplyBatcher(connection, 'replies', false);
    this.largeReplies = new ReplyBatcher(connection, 'large replies', false);
    const confirms = new RabbitChannel(connection, {
      name: 'retries and dead letters',
      open: (model) => model.createConfirmChannel(),
      setup: async (channel) => {
        await checkExchanges(channel, ['retry', 'dead']);
        await checkQuorum(channel, connection, QUORUM_CHECK);
      },
      drain: allAnswered,
    });
    this.channels = [this.confirmedReplies, this.replies, this.largeReplies, confirms];
    const publisher = new ConfirmedPublisher(confirms);
    const { username: account } = connection;
    this.republisher = new Republisher({ service, account, publisher, heldDeliveries, closing: this.closing.signal });
    this.stopChecking = keepChecking(publisher, connection, QUORUM_CHECK);
  }

  check(): string | undefined {
    return this.channels.map((channel) => channel.check()).find(Boolean);
  }

  /** From now on no delivery waits for the broker to come back. */
  stopWaiting(): void {
    this.closing.abort();
  }

  /** Flushes the publications and closes the channels. */
  async close(): Promise<void> {
    this.stopChecking();
    await Promise.all(this.channels.map((channel) => channel.close()));
  }

  /** @param knownPattern label of the metric: only patterns with a handler, because the number of others is unlimited */
  async settle(delivery: Delivery, decision: FinalDecision, knownPattern: string): Promise<void> {
    const settled = (outcome: string, status = '') => {
      delivery.ack();
      this.options.metrics.deliveries.inc({ pattern: knownPattern, outcome, status });
      endProcess(delivery.context, outcome, status);
      this.logger.debug({ msg: 'settled', outcome, ...(status && { status }), ...about(delivery) });
    };
    switch (decision.do) {
      case 'ack':
        if (decision.because === 'expired') this.late.count(delivery);
        return settled(decision.because);
      case 'ackThenReply':
      case 'replyThenAck': {
        delivery.letGoOfBody();
        const encoded = this.encode(delivery, decision.reply);
        if ('result' in decision.reply) delivery.replyBytes = encoded.body.length;
        const replies = this.repliesOf(decision, delivery, encoded);
        if (decision.do === 'ackThenReply') {
          // With its place: the broker would deliver another one for each that waits here without.
          if (!replies.isWritable && !(await delivery.whileKept(replies.whenWritable(delivery.patience))))
            return this.republisher.isOver(delivery) ? undefined : settled('reply_lost', encoded.status);
          // If the broker delivers it again, the answer is that of the redelivery. Otherwise its caller waited in vain.
          if (!(await delivery.ackForGood())) return delivery.isForgotten ? undefined : settled('reply_lost', encoded.status);
        }
        const { status, sent } = await this.reply(delivery, encoded, replies);
        return settled(sent ? 'replied' : 'reply_lost', status);
      }
      case 'suspectThenAck':
        this.logger.warn({
          msg: 'a command was delivered several times and never settled: it is handled alone',
          crashes: delivery.crashes,
          ...about(delivery),
        });
        if (!(await this.republisher.publish(delivery, decision))) return;
        // It may end this process at once, and an ack that is lost then makes a second one of it.
        await delivery.ackForGood();
        return settled('suspect');
      case 'againThenAck':
        this.logger.warn({
          msg: 'a suspect may have ended its process: it waits before it is handled again',
          crashes: delivery.crashes,
          ...about(delivery),
        });
        if (!(await this.republisher.publish(delivery, decision))) return;
        await delivery.ackForGood();
        return settled('again');
      case 'crashedThenAck':
        if (!(await this.republisher.publish(delivery, decision))) return;
        this.logDeath(delivery, { status: 'CRASHED', message: `${delivery.crashes} processes that handled it have ended.` });
        return settled('crashed');
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
        const kept = admitted && (await this.options.letterTurns.run(delivery, write));
        if (kept) this.logDeath(delivery, decision.error);
        else if (admitted && this.republisher.isOver(delivery)) return;
        else this.options.metrics.lettersDropped.inc();
        return settled(kept ? 'refused' : 'refused_dropped', status);
      }
    }
  }

  private logDeath(delivery: Delivery, { status, message: reason }: { status: string; message: string }): void {
    this.deaths.write(delivery, { status, reason });
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

  private async reply({ address, context, patience, exchange }: Delivery, reply: EncodedReply, replies: ReplyBatcher) {
    let sent = false;
    try {
      sent = address !== undefined && (await replies.publish(address, reply, patience, exchange === 'calls'));
    } catch (error) {
      this.logger.error({
        msg: 'a reply could not be published',
        requestId: context.requestId,
        reason: (error as Error).message,
      });
    }
    return { status: reply.status, sent };
  }

  private repliesOf({ do: order }: FinalDecision, { kind, address }: Delivery, { body }: EncodedReply): ReplyBatcher {
    // A query is asked again. A refusal has been acknowledged already.
    const isConfirmed = kind !== 'queries' && order === 'replyThenAck' && address && !this.confirmedReplies.isSilent(address);
    if (isConfirmed) return this.confirmedReplies;
    return body.length > LARGE_REPLY_BYTES ? this.largeReplies : this.replies;
  }
}
