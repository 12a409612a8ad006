import type { Channel, ConfirmChannel, Message } from 'amqplib';
import { checkExchanges } from '../connection/check-topology';
import type { Operation, Sender } from '../messages/message-properties';
import { NotYet } from '../connection/opened-channel';
import { openReplyQueue } from './reply-queue';
import { warmUp } from './warm-up';

/**
 * Channels in a row that may be given up because a queue refuses: about 3 s, and an election takes less. More: the queue is full, and the other
 * queues must not wait for it.
 */
const MOST_COLD_CHANNELS = 30;

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

  constructor(private readonly options: CallChannelOptions) {}

  /** @throws Error when an exchange is missing, or a queue refuses the first message: then another channel is needed */
  async setUp(channel: ConfirmChannel, onReply: (reply: Message) => void): Promise<void> {
    const { exchange, standbyExchange } = this.options;
    await checkExchanges(channel, [exchange, ...(standbyExchange === undefined ? [] : [standbyExchange]), 'replies']);
    const queue = await openReplyQueue(channel, onReply);
    this.replyQueues.set(channel, queue);
    await this.warmUp(channel, queue);
  }

  /** Replies come over the channel that the call was published on: another channel may be in setup. */
  replyQueueOf(channel: Channel | undefined): string | undefined {
    return channel && this.replyQueues.get(channel);
  }

  private async warmUp(channel: ConfirmChannel, replyTo: string): Promise<void> {
    const { sender, exchange: first, standbyExchange, warmUp: operations = [] } = this.options;
    const targets = operations.flatMap(({ kind, pattern }) => {
      const exchange = kind === 'command' ? first : standbyExchange;
      return exchange === undefined ? [] : { exchange, routingKey: pattern };
    });
    if ((await warmUp(channel, targets, sender, replyTo)) || ++this.coldChannels > MOST_COLD_CHANNELS) this.coldChannels = 0;
    else throw new NotYet('a queue refuses messages: it has no leader yet, or is full');
  }
}
