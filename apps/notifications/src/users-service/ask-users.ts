import { ApiError } from '@app/contracts/error';
import type { Message } from '@app/contracts/message';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';

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
  const until = performance.now() + QUESTION_TIMEOUT_MS;
  try {
    // Questions have a connection of their own. After a start commands may come by the other one first, hundreds of them: refused for that
    // they would all be tried again later.
    await client.whenReady(QUESTION_TIMEOUT_MS);
    const answer = await client.call(query, request, { apiKey, requestId, timeoutMs: until - performance.now() });
    return answer.parse();
  } catch (error) {
    // Nothing of the caller's command was done: an unanswered question is no unknown outcome.
    throw new ApiError('UNAVAILABLE', 'The users service is unavailable.', undefined, { cause: error });
  }
}
