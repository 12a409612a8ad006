import { Logger } from '@nestjs/common';
import type { MessageHandler } from '@nestjs/microservices';
import { isObservable, lastValueFrom } from 'rxjs';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { ApiError } from '@app/contracts/error';
import { MAX_BODY_BYTES, parseJson } from '@app/contracts/json';
import { isBug, type Outcome } from '../settle/ack-policy';
import { about, type Delivery } from '../delivery/delivery';
import type { PublisherRights } from './publisher-rights';

/** A type of event comes by the queue of events, or out of a retry queue: no lane has a binding for it. */
export const EVENT_TYPES: ReadonlySet<string> = new Set(ALL_EVENTS.map(({ type }) => type));
/** 1000 users with the longest of names: more than a command that adds them can hold, because it need not repeat those. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;

/** Brings a delivery to its handler, if it may, and says how that ended. */
export class HandlerRunner {
  private readonly logger = new Logger('RabbitMQ');

  constructor(
    private readonly handlers: ReadonlyMap<string, MessageHandler>,
    private readonly isUnavailable: (error: unknown) => boolean = () => false,
    private readonly isTransient: (error: unknown) => boolean = () => false,
    private readonly publishers?: PublisherRights,
  ) {}

  async outcomeOf(delivery: Delivery): Promise<Outcome> {
    // Also a second time, after a pause: what was promised at the deadline holds.
    if (delivery.isExpired) return { kind: 'expired' };
    if (delivery.isSuspect) return { kind: 'suspect' };
    let handler: MessageHandler;
    let body: unknown;
    try {
      handler = this.handlerOf(delivery);
      body = parseBody(delivery.message.content, delivery.context.pattern);
    } catch (error) {
      const refusal = error instanceof ApiError ? error : new ApiError('INVALID_ARGUMENT', 'The message cannot be read.');
      this.logger.warn({ msg: 'refused a message', reason: refusal.message, ...about(delivery) });
      return { kind: 'malformed', error: refusal };
    }
    return this.run(handler, body, delivery);
  }

  private handlerOf({ kind, address, problem, context }: Delivery): MessageHandler {
    if (problem) throw problem;
    const handler = this.handlers.get(context.pattern);
    const message = ALL_MESSAGES.find(({ pattern }) => pattern === context.pattern);
    // What is no message is an event, which comes back with the commands when it is tried again.
    const isQuery = message?.kind === 'query';
    if (!handler || isQuery !== (kind === 'queries')) {
      throw new ApiError('INVALID_ARGUMENT', 'No operation of this queue has this routing key.');
    }
    if (kind === 'queries' && !address) throw new ApiError('INVALID_ARGUMENT', 'A query needs reply_to.');
    return handler;
  }

  private async run(handler: MessageHandler, body: unknown, delivery: Delivery): Promise<Outcome> {
    try {
      // A message without a tenant is judged by what its body proves.
      if (delivery.context.apiKey) await this.publishers?.require(delivery.context);
      const answer: unknown = await handler(body, delivery.context);
      return { kind: 'result', value: isObservable(answer) ? await lastValueFrom(answer, { defaultValue: undefined }) : answer };
    } catch (error) {
      const { message: reason, stack = reason } = (error ?? {}) as Partial<Error>;
      if (this.isUnavailable(error)) {
        this.logger.warn({ msg: 'the database is away', reason, ...about(delivery) });
        return { kind: 'databaseAway' };
      }
      if (this.isTransient(error)) {
        this.logger.warn({ msg: 'the database could not do it now', reason, ...about(delivery) });
        return { kind: 'failed', error: new ApiError('UNAVAILABLE', 'The service could not do it now. Nothing was executed.') };
      }
      // Never the error itself: those of a database carry the values of the statement.
      if (isBug(error)) this.logger.error({ msg: 'a handler failed', stack, ...about(delivery) });
      return { kind: 'failed', error };
    }
  }
}

function parseBody(content: Buffer, pattern: string): unknown {
  const most = EVENT_TYPES.has(pattern) ? MAX_EVENT_BYTES : MAX_BODY_BYTES;
  if (content.length > most) throw new ApiError('INVALID_ARGUMENT', `The body must be at most ${most} bytes.`);
  return parseJson(content);
}
