import { ApiError } from '@app/contracts/error';
import type { Message } from '@app/contracts/message';
import type { DeliveryContext } from '@app/rabbitmq/delivery-context';
import type { RabbitClient } from '@app/rabbitmq/rabbit.client';

const QUESTION_TIMEOUT_MS = 2000;

/**
 * A question to the users service, on behalf of whoever is being served.
 *
 * @throws ApiError UNAVAILABLE when there is no answer within 2 s, or none that can be used
 */
export async function askUsers<Request, Result>(
  client: RabbitClient,
  query: Message<Request, Result>,
  request: Request,
  { apiKey, requestId }: Pick<DeliveryContext, 'apiKey' | 'requestId'>,
): Promise<Result> {
  try {
    const answer = await client.call(query, request, { apiKey, requestId, timeoutMs: QUESTION_TIMEOUT_MS });
    return answer.parse();
  } catch (error) {
    // Nothing of the caller's command was done: an unanswered question is no unknown outcome.
    throw new ApiError('UNAVAILABLE', 'The users service is unavailable.', undefined, { cause: error });
  }
}
