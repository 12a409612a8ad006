import { ApiError } from '@app/contracts/error';
import { Authorize } from '@app/contracts/users.authorize';
import type { PublisherRules } from '@app/rabbitmq/publishers';
import type { RabbitClient } from '@app/rabbitmq/rabbit.client';

const QUESTION_TIMEOUT_MS = 2000;

/** The users service knows who may publish for an API key, and is asked. */
export const publisherGrants =
  (client: RabbitClient): PublisherRules['isGranted'] =>
  async (publisher, apiKey, { requestId }) => {
    try {
      const answer = await client.call(Authorize, { publisher }, { apiKey, requestId, timeoutMs: QUESTION_TIMEOUT_MS });
      return answer.parse().granted;
    } catch (error) {
      // Nothing of the command was done: an unanswered question is no unknown outcome.
      throw new ApiError('UNAVAILABLE', 'The users service is unavailable.', undefined, { cause: error });
    }
  };
