import { ApiError } from '@app/contracts/error';
import type { PublishOutcome } from '../publishing/publisher';

/** Error of a call that was not executed and never will be. The reason is for the log. */
export const unavailable = (reason: string) =>
  new ApiError('UNAVAILABLE', 'The service is unavailable; nothing was executed.', undefined, { cause: new Error(reason) });

/** Error of a call that was written to the broker and got no answer. */
export const outcomeUnknown = (reason: string) =>
  new ApiError('DEADLINE_EXCEEDED', `The outcome is unknown: ${reason}. It is safe to repeat with the same identity.`);

/** Error of a message that is not, or perhaps not, in a queue. undefined when the broker has confirmed it. */
export function notPublished(outcome: PublishOutcome): ApiError | undefined {
  switch (outcome) {
    case 'confirmed':
      return undefined;
    case 'returned':
      return unavailable('no queue is bound for it');
    case 'nacked':
      return unavailable('its queue is full');
    case 'forbidden':
      return new ApiError('PERMISSION_DENIED', 'The broker account may not publish this operation to this exchange.');
    case 'lost':
      return outcomeUnknown('the connection was lost before the answer came');
  }
}
