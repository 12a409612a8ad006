import { ApiError } from '@app/contracts/error';
import { identifierProblem } from '@app/contracts/fields';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import type { OperationName } from '../db/idempotency-keys.repository';

/**
 * The key under which the answer of a command is kept. Without an Idempotency-Key the message is its own: a redelivery gets the first answer, and
 * takes nothing away that came meanwhile.
 *
 * @throws ApiError INVALID_ARGUMENT for a message without an Idempotency-Key and without a message_id
 */
export function answerKeyOf(
  { idempotencyKey, messageId }: Pick<DeliveryContext, 'idempotencyKey' | 'messageId'>,
  ofKeys: OperationName,
  ofMessages: OperationName,
): { operation: OperationName; key: string } {
  if (idempotencyKey !== undefined) return { operation: ofKeys, key: idempotencyKey };
  if (messageId === undefined)
    throw new ApiError('INVALID_ARGUMENT', 'message_id is required in a message without x-idempotency-key.');
  const problem = identifierProblem(messageId);
  if (problem) throw new ApiError('INVALID_ARGUMENT', `message_id${problem}`);
  return { operation: ofMessages, key: messageId };
}
