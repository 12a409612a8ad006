import type { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { LIMITS } from '@app/contracts/fields';
import { requestBodyOf, responseBodyOf } from './envelopes';
import { errorResponses } from './errors';

type HttpMessage = (typeof HTTP_MESSAGES)[number];

/** The Path Item of one operation. */
export function pathItemOf(message: HttpMessage): object {
  const { path, summary, description, idempotent, examples } = message.http;
  const [resource, ...rest] = path.slice('/v1/'.length).split('/');
  return {
    post: {
      operationId: [resource, ...rest.map(capitalized)].join(''),
      tags: [capitalized(resource)],
      summary,
      description,
      parameters: [
        ...(idempotent ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
        { $ref: '#/components/parameters/RequestId' },
      ],
      requestBody: { required: true, content: content('data', requestBodyOf(message), examples.request) },
      responses: {
        200: {
          description: message.kind === 'command' ? 'Done and committed.' : 'The result.',
          headers: { 'x-request-id': { $ref: '#/components/headers/RequestId' }, ...replyHeaders(message) },
          content: content('result', responseBodyOf(message), examples.result),
        },
        ...errorResponses(message),
      },
    },
  };
}

const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

const content = (key: 'data' | 'result', schema: string, examples: HttpMessage['http']['examples']['request']) => ({
  'application/json': {
    schema: { $ref: `#/components/schemas/${schema}` },
    examples: Object.fromEntries(
      Object.entries(examples).map(([name, { summary, value }]) => [name, { summary, value: { [key]: value } }]),
    ),
  },
});

const replyHeaders = ({ replyHeaders: headers = {} }: HttpMessage) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, { description }]) => [
      name,
      {
        description: `${description} Percent-encoded.`,
        required: true,
        schema: { type: 'string', minLength: 1, maxLength: 3 * LIMITS.identifierBytes },
      },
    ]),
  );
