import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import type { Message } from '@app/contracts/message';
import { schemaRef } from './schemas';

type AnyMessage = Message<object, object>;

export const requestBodyOf = ({ request }: AnyMessage) => `${request.name}Body`;
export const responseBodyOf = ({ result }: AnyMessage) => result.name.replace(/Result$/, 'ResponseBody');

const envelope = (key: 'data' | 'result', type: new () => object) => ({
  type: 'object',
  required: [key],
  properties: { [key]: schemaRef(type) },
});

/** The schemas of all bodies of requests and successes by name: generated clients have a class for each. */
export const envelopes = (): Record<string, object> =>
  Object.fromEntries(
    HTTP_MESSAGES.flatMap((message: AnyMessage) => [
      [requestBodyOf(message), envelope('data', message.request)],
      [responseBodyOf(message), envelope('result', message.result)],
    ]),
  );
