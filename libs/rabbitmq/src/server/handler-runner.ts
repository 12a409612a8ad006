import type { MessageHandler } from '@nestjs/microservices';
import { isObservable, lastValueFrom } from 'rxjs';
import { reasonOf } from '@app/amqp/connection/failures';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { ApiError } from '@app/contracts/error';
import { MAX_BODY_BYTES, MAX_QUERY_BYTES, parseJson } from '@app/contracts/json';
import { runIn } from '@app/tracing/tracing';
import { isBug, type Outcome } from '../settle/ack-policy';
import { PublisherLines } from '../settle/publisher-lines';
import type { Delivery } from '../delivery/delivery';
import type { DeliveryContext } from '../delivery/delivery-context';
import type { PublisherRights } from './publisher-rights';
import type { RabbitServerOptions } from './rabbit-server-options';

const EVENTS: ReadonlySet<string> = new Set(ALL_EVENTS.map(({ type }) => type));
/** An event can only come from the event queue or from a retry queue: no lane has a binding for it. */
export const isEvent = (pattern: string) => EVENTS.has(pattern);

/** Fits 1000 users with the longest names. It is above the limit of commands, because an event repeats names that the command need not. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;

function mostBytesOf({ kind, context }: Delivery): number {
  if (kind === 'queries') return MAX_QUERY_BYTES;
  return isEvent(context.pattern) ? MAX_EVENT_BYTES : MAX_BODY_BYTES;
}

/** Passes a delivery to its handler, if that is allowed, and returns the outcome. */
export class HandlerRunner {
  private readonly refusals = new PublisherLines('refused a message', 'refused more messages of a publisher');
  /** Each query meets a database that is away, for as long as it is. */
  private readonly away = new PublisherLines('the database is away', 'more messages of a publisher met a database that is away');
  /** So does each command while a disk is full, and it is tried eight times. */
  private readonly transients = new PublisherLines(
    'a transient error of the database',
    'more messages of a publisher met a transient error of the database',
  );
  private readonly bugs = new PublisherLines('a handler failed', 'a handler failed for more messages of a publisher', 'error');

  constructor(
    private readonly handlers: ReadonlyMap<string, MessageHandler>,
    private readonly options: Pick<RabbitServerOptions, 'isUnavailable' | 'isTransient' | 'isTimeout' | 'withoutScope'>,
    private readonly rights?: PublisherRights,
  ) {}

  async outcomeOf(delivery: Delivery): Promise<Outcome> {
    // Checked again after a pause: nothing may be executed after the deadline.
    if (delivery.isExpired) return { kind: 'expired' };
    if (delivery.isSuspect) return { kind: 'suspect' };
    let handler: MessageHandler;
    let body: unknown;
    try {
      handler = this.handlerOf(delivery);
      body = parseJson(delivery.message.content);
    } catch (error) {
      return this.malformed(delivery, error);
    }
    return this.run(handler, body, delivery);
  }

  /**
   * The outcome of a body that is larger than any may be. It is no suspect, because no handler gets it.
   *
   * @returns undefined for any other body
   */
  outcomeOfTooLarge(delivery: Delivery): Outcome | undefined {
    const most = mostBytesOf(delivery);
    if (delivery.message.content.length <= most) return undefined;
    if (delivery.isExpired) return { kind: 'expired' };
    try {
      this.handlerOf(delivery);
    } catch (error) {
      return this.malformed(delivery, error);
    }
    return this.malformed(delivery, new ApiError('INVALID_ARGUMENT', `The body must be at most ${most} bytes.`));
  }

  private malformed(delivery: Delivery, thrown: unknown): Outcome {
    const error = thrown instanceof ApiError ? thrown : new ApiError('INVALID_ARGUMENT', 'The message cannot be read.');
    // Any other one has its line as a letter.
    if (delivery.context.awaited || delivery.kind === 'queries') this.refusals.write(delivery, { reason: error.message });
    return { kind: 'malformed', error };
  }

  private handlerOf({ kind, address, problem, context }: Delivery): MessageHandler {
    if (problem) throw problem;
    const handler = this.handlers.get(context.pattern);
    const message = ALL_MESSAGES.find(({ pattern }) => pattern === context.pattern);
    // A pattern without a message is an event. Its retries arrive in a command queue.
    const isQuery = message?.kind === 'query';
    if (!handler || isQuery !== (kind === 'queries')) {
      throw new ApiError('INVALID_ARGUMENT', 'No operation of this queue has this routing key.');
    }
    if (kind === 'queries' && !address) throw new ApiError('INVALID_ARGUMENT', 'A query needs reply_to.');
    return handler;
  }

  private async run(handler: MessageHandler, body: unknown, delivery: Delivery): Promise<Outcome> {
    const { isUnavailable, isTransient, isTimeout, withoutScope } = this.options;
    const since = performance.now();
    try {
      const { context } = delivery;
      const hasScope = context.span?.isRecording() && !withoutScope?.includes(context.pattern);
      const value = hasScope
        ? await runIn(context.span, () => this.answerOf(handler, body, context))
        : await this.answerOf(handler, body, context);
      return { kind: 'result', value };
    } catch (error) {
      const { message, stack = message, cause } = (error ?? {}) as Partial<Error>;
      if (await isUnavailable?.(error)) {
        this.away.write(delivery, { reason: reasonOf(error) });
        return { kind: 'databaseAway' };
      }
      if (isTimeout?.(error)) delivery.cancelledAfterMs = performance.now() - since;
      // The caller is told that nothing was done. Why is in this line only.
      const transient = [error, cause].find((one) => isTransient?.(one));
      if (transient) this.transients.write(delivery, { reason: reasonOf(transient) });
      if (isTransient?.(error)) {
        return { kind: 'failed', error: new ApiError('UNAVAILABLE', 'The service could not do it now. Nothing was executed.') };
      }
      // Never log the error object: database errors contain the values of the statement.
      if (isBug(error)) this.bugs.write(delivery, { stack });
      return { kind: 'failed', error };
    }
  }

  private async answerOf(handler: MessageHandler, body: unknown, context: DeliveryContext): Promise<unknown> {
    // A message without a tenant proves its rights in its body.
    if (context.apiKey) await this.rights?.require(context);
    const answer: unknown = await handler(body, context);
    return isObservable(answer) ? lastValueFrom(answer, { defaultValue: undefined }) : answer;
  }
}
