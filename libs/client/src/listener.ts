import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Channel, ConsumeMessage, Options } from 'amqplib';
import { Backoff } from '@app/amqp/connection/backoff';
import { unavailable } from '@app/amqp/calls/call-errors';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { closeQuietly, isChannelClosed } from '@app/amqp/connection/opened-channel';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { HEADER } from '@app/amqp/messages/headers';
import { NotWritten, type ConfirmedPublisher } from '@app/amqp/publishing/publisher';
import { within } from '@app/runtime/within';
import type { CloudEvent } from '@app/contracts/event';
import { readEvent, type EventType } from './events';
import { readListenOptions, type ListenOptions } from './listen-options';
import { deadOf, ListenerQueue } from './listener-queue';
import { textOf } from './text-of';

const MAX_REASON_LENGTH = 500;
/** Longest wait of an event that comes again for its handler that still runs: one that never ends must not keep the event. */
const PATIENCE_MS = 60_000;

interface Delivery {
  readonly message: ConsumeMessage;
  readonly channel: Channel;
  /** Ends the pauses between tries: when the channel is lost, the event comes again at once and waits for its first copy. */
  readonly pauses: AbortSignal;
}

/**
 * Consumes a queue of events. A failed event is retried with growing waits, then published to `<queue>.dead` with the reason in `x-dead-reason`.
 */
export class Listener {
  private readonly channel: RabbitChannel<Channel>;
  private readonly closing = new AbortController();
  private readonly running = new Set<Promise<void>>();
  /** Handlers at work, by the id of the event. After a lost connection the event comes again, and must not be handled twice at a time. */
  private readonly atWork = new Map<string, Promise<boolean>>();
  private readonly tries: number;
  private readonly timeoutMs: number;
  private pauses?: AbortController;
  private tag?: string;

  /**
   * @param onClosed called when it is closed and its last handler has ended, which may be after the drain
   * @throws RangeError for an invalid option
   */
  constructor(
    private readonly connection: RabbitConnection,
    private readonly publisher: ConfirmedPublisher,
    private readonly options: ListenOptions,
    private readonly onClosed: () => void,
  ) {
    const { queue, handlers, prefetch, tries, maxLength, timeoutMs } = readListenOptions(options);
    this.tries = tries;
    this.timeoutMs = timeoutMs;
    const listened = new ListenerQueue(connection, queue, Object.keys(handlers), maxLength);
    this.channel = new RabbitChannel(connection, {
      name: `events to ${queue}`,
      open: (model) => model.createChannel(),
      setup: (channel) => this.setUp(channel, listened, prefetch),
    });
  }

  /** Whether it was closed on purpose. */
  get isClosed(): boolean {
    return this.closing.signal.aborted;
  }

  /** undefined when it consumes, else a short reason without secrets. */
  check(): string | undefined {
    return this.channel.check();
  }

  /** Waits until it consumes. @throws ApiError UNAVAILABLE with the reason when it does not consume in time */
  async ready(): Promise<void> {
    if (!(await this.channel.whenReady(this.timeoutMs))) {
      throw unavailable(this.check() ?? 'closed');
    }
  }

  /** Takes no more events, and waits up to `drainTimeoutMs` milliseconds for the running handlers. Unfinished events are delivered again. */
  async close(drainTimeoutMs = 10_000): Promise<void> {
    this.closing.abort();
    this.pauses?.abort();
    const { current } = this.channel;
    if (current && this.tag !== undefined) await within(1000, current.cancel(this.tag));
    await within(drainTimeoutMs, Promise.all(this.running));
    await this.channel.close();
    void Promise.allSettled(this.running).then(this.onClosed);
  }

  private async setUp(channel: Channel, queue: ListenerQueue, prefetch: number): Promise<void> {
    await queue.prepare(channel);
    await channel.prefetch(prefetch);
    const pauses = (this.pauses = new AbortController());
    channel.once('close', () => pauses.abort());
    const { consumerTag } = await channel.consume(this.options.queue, (message) => {
      // The broker cancels consumers when the queue is deleted or moves to another node.
      if (!message) return closeQuietly(channel);
      if (this.isClosed) return;
      const work = this.handle({ message, channel, pauses: pauses.signal }).finally(() => this.running.delete(work));
      this.running.add(work);
    });
    this.tag = consumerTag;
  }

  /** Handles and acknowledges an event. If it ends without an ack, the broker delivers the event again. */
  private async handle(delivery: Delivery): Promise<void> {
    const event = readEvent(delivery.message.content);
    if (!event) return this.bury(delivery, 'It is not a CloudEvent in JSON.', 1);
    const { id } = event;
    // Again after each failure: of several copies that waited together one is handled at a time.
    for (let earlier = this.atWork.get(id), last; earlier && earlier !== last; earlier = this.atWork.get(id)) {
      if (await succeeds(earlier)) return ack(delivery);
      last = earlier;
    }
    if (delivery.pauses.aborted) return;
    const work = this.work(event, delivery);
    this.atWork.set(id, work);
    try {
      if (await work) ack(delivery);
    } finally {
      if (this.atWork.get(id) === work) this.atWork.delete(id);
    }
  }

  /** @returns whether a handler has succeeded, or none is needed */
  private async work(event: CloudEvent<unknown>, delivery: Delivery): Promise<boolean> {
    const { id, type } = event;
    const handler = this.options.handlers[type as EventType] as ((event: unknown) => unknown) | undefined;
    const backoff = new Backoff(500, 60_000);
    for (let tries = 1; handler; tries++) {
      try {
        // Read again for each further try: the one before may have changed it.
        await handler(tries === 1 ? event : readEvent(delivery.message.content));
        break;
      } catch (error) {
        const reason = textOf(error);
        this.log('a handler failed', { type, id, tries, reason });
        if (tries >= this.tries) {
          await this.bury(delivery, reason, tries);
          return false;
        }
      }
      await backoff.wait(delivery.pauses);
      // The broker delivers it again: the channel is lost, or will be closed.
      if (delivery.pauses.aborted) return false;
    }
    return true;
  }

  private async bury(delivery: Delivery, reason: string, tries: number): Promise<void> {
    const { content, properties } = delivery.message;
    const { messageId, type, contentType, timestamp, appId } = properties as Options.Publish;
    const headers: Record<string, unknown> = properties.headers ?? {};
    const backoff = new Backoff();
    while (!isChannelClosed(delivery.channel)) {
      try {
        const outcome = await this.publisher.publish({
          exchange: deadOf(this.options.queue),
          routingKey: '',
          body: content,
          properties: {
            persistent: true,
            ...{ messageId, type, contentType, timestamp, appId },
            correlationId: randomUUID(),
            headers: { ...headers, [HEADER.deadReason]: reason.slice(0, MAX_REASON_LENGTH), [HEADER.attempt]: tries },
          },
        });
        if (outcome === 'confirmed') return ack(delivery);
        this.log('a dead letter could not be published', { outcome });
      } catch (error) {
        if (!(error instanceof NotWritten)) throw error;
        this.log('a dead letter could not be published', { reason: error.message });
      }
      if (delivery.pauses.aborted) return;
      await backoff.wait(delivery.pauses);
    }
  }

  private log(msg: string, fields: object): void {
    this.connection.observer.log('warn', { msg, queue: this.options.queue, ...fields });
  }
}

/** Whether a handler succeeds within a minute that runs already, because a lost connection has left it. */
function succeeds(work: Promise<boolean>): Promise<boolean> {
  return Promise.race([work.catch(() => false), sleep(PATIENCE_MS, false, { ref: false })]);
}

function ack({ channel, message }: Delivery): void {
  if (isChannelClosed(channel)) return;
  try {
    channel.ack(message);
  } catch {
    // The channel is closing; its close event follows.
  }
}
