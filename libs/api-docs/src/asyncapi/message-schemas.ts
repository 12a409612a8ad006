import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { ErrorStatus } from '@app/contracts/error';
import type { Event } from '@app/contracts/event';
import type { Message } from '@app/contracts/message';
import { HEADER } from '@app/amqp/messages/headers';
import { pascalCase } from '../openapi/names';
import { schemaRef } from '../openapi/schemas';
import type { FieldsSchema } from './envelopes';
import { ERROR_SCHEMA, POSSIBLE_STATUSES } from './errors';

/** A schema in `components`, where its name is the name of the class that other teams generate from it. */
interface NamedSchema {
  name: string;
  schema: FieldsSchema;
}

/** The headers of a successful reply: those of all replies, unless the message has more. */
export function headersOfReply({ pattern, replyHeaders = {} }: Message<object, object>): NamedSchema {
  const own = Object.entries(replyHeaders);
  return {
    name: `${own.length > 0 ? pascalCase(pattern) : ''}ReplyHeaders`,
    schema: {
      type: 'object',
      required: [HEADER.status, ...own.map(([name]) => name)],
      properties: {
        [HEADER.status]: { const: 'OK', description: 'Any other value is the status of an error.' },
        ...Object.fromEntries(own.map(([name, { description }]) => [name, { type: 'string', description }])),
      },
    },
  };
}

/** The headers of an error reply. */
export const headersOfError = (status: ErrorStatus): NamedSchema => ({
  name: `${pascalCase(status)}Headers`,
  schema: {
    type: 'object',
    required: [HEADER.status],
    properties: { [HEADER.status]: { const: status, description: 'The status of the error.' } },
  },
});

/** The body of an error reply. */
export const bodyOfError = (status: ErrorStatus): NamedSchema => ({
  name: `${pascalCase(status)}Error`,
  schema: {
    ...ERROR_SCHEMA,
    properties: { ...ERROR_SCHEMA.properties, status: { ...ERROR_SCHEMA.properties.status, const: status } },
  },
});

/** The body of an event, which is a CloudEvent. */
export function bodyOfEvent({ type, service, data }: Event<object>): NamedSchema {
  const properties = {
    specversion: { const: '1.0', description: 'Version of CloudEvents.' },
    id: {
      type: 'string',
      format: 'uuid',
      description: 'The same in every repetition: use it to ignore repetitions, or make your handler idempotent.',
    },
    source: { const: `/${service}`, description: 'The publishing service.' },
    type: { const: type, description: 'Also the routing key.' },
    subject: { type: 'string', description: 'The organization, or the API key if the event is about one.' },
    time: { type: 'string', format: 'date-time', description: 'Time of the event, in UTC.' },
    datacontenttype: { const: 'application/json', description: 'Content type of `data`.' },
    apikey: { type: 'string', description: 'The tenant; also in header `x-api-key`.' },
    data: { description: 'Data of the event.', allOf: [schemaRef(data)] },
  };
  return { name: pascalCase(type), schema: { type: 'object', required: Object.keys(properties), properties } };
}

/** The schemas of all headers and bodies that are no contract class. */
export const messageSchemas = (): Record<string, object> =>
  Object.fromEntries(
    [
      ...ALL_MESSAGES.map(headersOfReply),
      ...ALL_EVENTS.map(bodyOfEvent),
      ...POSSIBLE_STATUSES.flatMap((status) => [headersOfError(status), bodyOfError(status)]),
    ].map(({ name, schema }) => [name, schema]),
  );
