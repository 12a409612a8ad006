import { Logger } from '@nestjs/common';
import type { Channel, ConfirmChannel } from 'amqplib';
import type { ServiceName } from '@app/contracts/message';
import { INTERNAL, type Decision } from './ack-policy';
import { Backoff } from '@app/amqp/backoff';
import { RabbitChannel } from '@app/amqp/channel';
import { checkExchanges } from '@app/amqp/check-topology';
import type { RabbitConnection } from '@app/amqp/connection';
import { about, type Delivery } from './delivery';
import type { TransportMetrics } from './metrics';
import { ConfirmedPublisher, NotWritten, type Publication, type PublishOutcome } from '@app/amqp/publisher';
import { encodeReply, type EncodedReply } from '@app/amqp/reply-format';
import { Replies } from './replies';
import { republication } from './republication';
import { commandQueue, retryQueue, suspectQueue } from './topology';

/** How long a reply without a deadline waits for a publishing connection, in milliseconds. */
const REPLY_PATIENCE_MS = 5000;
/** Tries to publish a message again before it goes back to its queue: the waits between them take 8 to 16 s together. */
const REPUBLISH_TRIES = 6;

type Republished = Extract<Decision, { do: 'retryThenAck' | 'deadThenAck' | 'suspectThenAck' }>;

/** Carries out what the ack policy decided: publishes, then acknowledges. */
export class Settlement {
  private readonly logger = new Logger('RabbitMQ');
  private readonly closing = new AbortController();
  private readonly replyChannel: RabbitChannel<Channel>;
  private readonly replies: Replies;
  private readonly confirms: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;

  /** @param connection for publishing only: a blocked one must not stop the consumers */
  constructor(
    private readonly service: ServiceName,
    connection: RabbitConnection,
    private readonly metrics: TransportMetrics,
  ) {
    this.replyChannel = new RabbitChannel(connection, {
      name: 'replies',
      open: (model) => model.createChannel(),
      setup: (channel) => checkExchanges(channel, ['replies']),
    });
    this.replies = new Replies(this.replyChannel);
    this.confirms = new RabbitChannel(connection, {
      name: 'retries and dead letters',
      open: (model) => model.createConfirmChannel(),
      setup: (channel) => checkExchanges(channel, ['retry', 'dead']),
    });
    this.publisher = new ConfirmedPublisher(this.confirms);
  }

  check(): string | undefined {
    return this.replyChannel.check() ?? this.confirms.check();
  }

  /** From now on nothing waits for the broker to come back. */
  stopWaiting(): void {
    this.closing.abort();
  }

  /** Flushes what was published. */
  async close(): Promise<void> {
    await Promise.all([this.replyChannel.close(), this.confirms.close()]);
  }

  /** @param knownPattern label of the metric: only patterns with a handler, because others are without number */
  async settle(delivery: Delivery, decision: Exclude<Decision, { do: 'hold' }>, knownPattern: string): Promise<void> {
    const settled = (outcome: string, status = '') => {
      delivery.ack();
      this.metrics.deliveries.inc({ pattern: knownPattern, outcome, status });
      this.logger.debug({ msg: 'settled', outcome, ...(status && { status }), ...about(delivery) });
    };
    const requeued = (status = '') => {
      delivery.requeue();
      this.metrics.deliveries.inc({ pattern: knownPattern, outcome: 'requeued', status });
    };
    switch (decision.do) {
      case 'ack':
        return settled(decision.because);
      case 'replyThenAck': {
        const { status, sent } = await this.reply(delivery, this.encode(delivery, decision.reply));
        return settled(sent ? 'replied' : 'reply_lost', status);
      }
      case 'suspectThenAck':
        this.logger.warn({
          msg: 'a command was delivered several times and never settled: it is handled alone',
          ...about(delivery),
        });
        return (await this.republish(delivery, decision)) ? settled('suspect') : requeued();
      case 'retryThenAck':
      case 'deadThenAck': {
        const { status } = decision.error;
        const outcome = decision.do === 'retryThenAck' ? 'retried' : 'dead';
        return (await this.republish(delivery, decision)) ? settled(outcome, status) : requeued(status);
      }
    }
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

  private async reply({ address, context }: Delivery, reply: EncodedReply) {
    const patience = context.deadline === undefined ? REPLY_PATIENCE_MS : context.deadline - Date.now();
    let sent = false;
    if (address && (await this.replyChannel.whenReady(patience))) {
      try {
        sent = await this.replies.publish(address, reply);
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

  /** @returns whether the broker has the message elsewhere, so that this delivery can be acknowledged */
  private async republish(delivery: Delivery, decision: Republished): Promise<boolean> {
    const { context } = delivery;
    const backoff = new Backoff(500, 8000);
    let withHeaders = true;
    for (let tries = 0; tries < REPUBLISH_TRIES && !this.closing.signal.aborted && !delivery.isForgotten; tries++) {
      if (tries > 0) await backoff.wait(this.closing.signal);
      const publication = this.publicationOf(delivery, decision, withHeaders);
      const outcome = await this.tryPublish(publication);
      if (outcome === 'confirmed') return true;
      const { exchange, routingKey } = publication;
      const line = { msg: 'publishing again failed', requestId: context.requestId, exchange, routingKey, outcome };
      // A publisher, or a connection that ended, can bring this about: nothing of ours is broken, and it is tried again.
      if (['unencodable', 'not written', 'lost'].includes(outcome)) this.logger.warn(line);
      else this.logger.error(line);
      if (outcome === 'unencodable') withHeaders = false;
    }
    return false;
  }

  private publicationOf(delivery: Delivery, decision: Republished, withHeaders: boolean): Publication {
    const { service } = this;
    const { attempt } = delivery.context;
    switch (decision.do) {
      case 'suspectThenAck':
        return republication(delivery, { exchange: 'retry', routingKey: suspectQueue(service) }, { attempt, withHeaders });
      case 'retryThenAck': {
        const routingKey = retryQueue(service, decision.delay);
        return republication(delivery, { exchange: 'retry', routingKey }, { attempt: attempt + 1, withHeaders });
      }
      case 'deadThenAck': {
        const target = { exchange: 'dead', routingKey: commandQueue(service) } as const;
        return republication(delivery, target, { attempt, dead: decision.error, withHeaders });
      }
    }
  }

  private async tryPublish(publication: Publication): Promise<PublishOutcome | 'unencodable' | 'not written'> {
    try {
      return await this.publisher.publish(publication);
    } catch (error) {
      if (!(error instanceof NotWritten)) throw error;
      return error.cause ? 'unencodable' : 'not written';
    }
  }
}
