import { randomUUID } from 'node:crypto';
import type { Channel, ChannelModel, ConfirmChannel, Message } from 'amqplib';
import { within } from '@app/runtime/within';
import { checkExchanges } from '../connection/check-topology';
import { closeQuietly, NotYet, refusalOf } from '../connection/opened-channel';
import { openOwnQueue } from '../connection/own-queue';
import { HEADER } from '../messages/headers';
import type { Operation, Sender } from '../messages/message-properties';
import { writeMessage } from '../messages/write-message';

/**
 * Channels in a row that may be given up because a queue refuses: about 3 s, and an election takes less. More: the queue is full, and the other
 * queues must not wait for it.
 */
const MOST_COLD_CHANNELS = 30;
/** Longest wait for the confirms of the first messages. */
const WARM_UP_MS = 1000;
/** Deadline of a first message, which has passed: consumers drop such a message unread. */
export const PASSED = 1;

export interface CallChannelOptions {
  sender: Sender;
  exchange: string;
  standbyExchange?: string;
  /** One operation for each queue that is called. */
  warmUp?: readonly Operation[];
}

/** Makes channels ready for calls. Each has a reply queue of its own. */
export class CallChannels {
  private readonly replyQueues = new WeakMap<Channel, string>();
  private coldChannels = 0;
  /** The connection over which a reply queue is being bound. */
  private binding?: ChannelModel;

  constructor(private readonly options: CallChannelOptions) {}

  /** @throws Error when an exchange is missing, or a queue refuses the first message: then another channel is needed */
  async setUp(channel: ConfirmChannel, onReply: (reply: Message) => void): Promise<void> {
    const { exchange, standbyExchange } = this.options;
    await checkExchanges(channel, [exchange, ...(standbyExchange === undefined ? [] : [standbyExchange]), 'replies']);
    const queue = await openOwnQueue(channel, { exchange: 'replies' }, onReply);
    this.replyQueues.set(channel, queue);
    if ((await this.warmUp(channel, queue)) || ++this.coldChannels > MOST_COLD_CHANNELS) this.coldChannels = 0;
    else throw new NotYet('a queue refuses messages: it has no leader yet, or is full');
  }

  /** Replies come over the channel that the call was published on: another channel may be in setup. */
  replyQueueOf(channel: Channel | undefined): string | undefined {
    return channel && this.replyQueues.get(channel);
  }

  /**
   * Binds the reply queue of a channel once more, which changes nothing when it is bound. Not over that channel: a broker node that stands still may
   * delay a binding for a minute, and the calls would wait behind it.
   */
  async bindAgain(model: ChannelModel, channel: Channel): Promise<void> {
    const queue = this.replyQueues.get(channel);
    if (queue === undefined || this.binding === model) return;
    this.binding = model;
    try {
      const other = await model.createChannel();
      other.on('error', () => undefined);
      await other.bindQueue(queue, 'replies', queue);
      closeQuietly(other);
    } finally {
      this.binding = undefined;
    }
  }

  /**
   * Publishes a first message, without effect, to each quorum queue.
   *
   * A channel opens a session with a quorum queue by its first message. RabbitMQ 3.10 asks only the node that had the leader at that moment. If that
   * node is away, it nacks each message of this channel to this queue until the node is back, also when the queue has another leader by then.
   *
   * @returns false when a queue refused it. true when all was confirmed, or no answer came within 1 s
   * @throws Error of the broker when the account may not publish it
   */
  private async warmUp(channel: ConfirmChannel, replyTo: string): Promise<boolean> {
    const { sender, exchange, standbyExchange, warmUp = [] } = this.options;
    let isRefused = false;
    const confirms = warmUp.flatMap(({ kind, pattern }) => {
      const target = kind === 'command' ? exchange : standbyExchange;
      if (target === undefined) return [];
      const id = randomUUID();
      const properties = {
        contentType: 'application/json',
        correlationId: id,
        messageId: id,
        type: pattern,
        expiration: WARM_UP_MS,
        ...sender,
        // A deadline counts only when a caller waits. This one gets no reply.
        replyTo,
        headers: { [HEADER.deadline]: PASSED },
      };
      return new Promise<void>((resolve) =>
        writeMessage(
          channel,
          { exchange: target, routingKey: pattern, mandatory: false },
          properties,
          Buffer.from('{}'),
          (error) => {
            isRefused ||= error !== null;
            resolve();
          },
        ),
      );
    });
    await within(WARM_UP_MS, Promise.all(confirms));
    const refusal = refusalOf(channel);
    // Another channel would not help, and a queue without a leader is not the reason.
    if (refusal) throw refusal;
    return !isRefused;
  }
}
