import { ApiError } from '@app/contracts/error';
import type { PublishOutcome } from './publisher';

/** Certainly not executed, and never will be. The reason is for the log. */
export const unavailable = (reason: string) =>
  new ApiError('UNAVAILABLE', 'The service is unavailable; nothing was executed.', undefined, { cause: new Error(reason) });

/** Written to the broker, and no answer. */
export const outcomeUnknown = (reason: string) =>
  new ApiError('DEADLINE_EXCEEDED', `The outcome is unknown: ${reason}. It is safe to repeat with the same identity.`);

/** Why a message that was handed to the broker is not, or perhaps not, in a queue. */
export function notPublished(outcome: PublishOutcome): ApiError | undefined {
  switch (outcome) {
    case 'confirmed':
      return undefined;
    case 'returned':
      return unavailable('no queue is bound for it');
    case 'nacked':
      return unavailable('its queue is full');
    case 'forbidden':
      return new ApiError('PERMISSION_DENIED', 'The broker account may not publish this operation.');
    case 'lost':
      return outcomeUnknown('the connection was lost before the answer came');
  }
}
