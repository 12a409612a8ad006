import { ApiError } from '@app/contracts/error';
import type { Message } from '@app/contracts/message';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';

export const QUESTION_TIMEOUT_MS = 2000;

/**
 * Asks the users service on behalf of the current caller.
 *
 * @throws ApiError UNAVAILABLE when there is no usable answer within 2 s
 */
export async function askUsers<Request, Result>(
  client: RabbitClient,
  query: Message<Request, Result>,
  request: Request,
  { apiKey, requestId, span }: Pick<DeliveryContext, 'apiKey' | 'requestId' | 'span'>,
): Promise<Result> {
  const until = performance.now() + QUESTION_TIMEOUT_MS;
  try {
    // Questions use their own connection. After a start hundreds of commands may arrive on the other connection first: without this wait, all
    // of them would fail and be retried later.
    await client.whenReady(QUESTION_TIMEOUT_MS);
    const answer = await client.call(query, request, { apiKey, requestId, span, timeoutMs: until - performance.now() });
    return answer.parse();
  } catch (error) {
    // UNAVAILABLE in any case: a question changes nothing, so the outcome of the caller's command is known.
    throw new ApiError('UNAVAILABLE', 'The users service is unavailable.', undefined, { cause: error });
  }
}
