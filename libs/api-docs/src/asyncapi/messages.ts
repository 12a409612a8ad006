import type { ErrorStatus } from '@app/contracts/error';
import type { CloudEvent, Event } from '@app/contracts/event';
import type { Message } from '@app/contracts/message';
import { HEADER } from '@app/amqp/messages/headers';
import { schemaRef } from '../openapi/schemas';
import { envelopeOf } from './envelopes';
import { ERROR_EXAMPLES } from './errors';
import { bodyOfError, bodyOfEvent, headersOfError, headersOfReply } from './message-schemas';

export interface Ref {
  $ref: string;
}

/** A Message Object of AsyncAPI 3. The AMQP properties are an extension, because `headers` must not contain protocol fields. */
export interface MessageObject {
  name: string;
  title: string;
  summary: string;
  contentType: string;
  tags: { name: string }[];
  headers: Ref;
  'x-amqp-properties': Ref;
  correlationId?: Ref;
  payload: Ref;
  bindings?: { amqp: object };
  examples: { name: string; headers: Record<string, unknown>; payload: unknown }[];
}

export const ref = (kind: string, name: string): Ref => ({ $ref: `#/components/${kind}/${name}` });
export const BINDING_VERSION = '0.3.0';
export const SECURITY = [ref('securitySchemes', 'account')];

const CORRELATION_ID = ref('correlationIds', 'call');
const EXAMPLE_REQUEST_ID = '0b6d4c0e-7f43-4a57-9d8c-2f9b1a3c5e70';
const EXAMPLE_TIME = '2026-01-31T11:58:02.117Z';
const API_KEY = 'demo-key';

/** A command or query. */
export function requestMessage(message: Message<object, object>): MessageObject {
  const { pattern, service, kind, purpose, request, example, tenantless } = message;
  const envelope = envelopeOf(message);
  return {
    name: pattern,
    title: pattern,
    summary: purpose,
    contentType: 'application/json',
    tags: [{ name: service }, { name: kind }],
    headers: ref('schemas', envelope.headers),
    'x-amqp-properties': ref('schemas', envelope.properties),
    correlationId: CORRELATION_ID,
    payload: schemaRef(request),
    bindings: { amqp: { messageType: pattern, bindingVersion: BINDING_VERSION } },
    examples: [
      {
        name: pattern,
        headers: { ...(!tenantless && { [HEADER.apiKey]: API_KEY }), [HEADER.requestId]: EXAMPLE_REQUEST_ID },
        payload: example.request,
      },
    ],
  };
}

/** The successful reply to a command or query. */
export function replyMessage(message: Message<object, object>): MessageObject {
  const { pattern, service, result, example, replyHeaders = {} } = message;
  return {
    name: `${pattern}.reply`,
    title: `Reply to ${pattern}`,
    summary: `Reply to a successful \`${pattern}\`.`,
    contentType: 'application/json',
    tags: [{ name: service }, { name: 'reply' }],
    headers: ref('schemas', headersOfReply(message).name),
    'x-amqp-properties': ref('schemas', 'ReplyProperties'),
    correlationId: CORRELATION_ID,
    payload: schemaRef(result),
    examples: [
      {
        name: `${pattern}.reply`,
        headers: {
          [HEADER.status]: 'OK',
          ...Object.fromEntries(Object.entries(replyHeaders).map(([name, header]) => [name, header.example])),
        },
        payload: example.result,
      },
    ],
  };
}

/** An error reply. */
export function errorMessage(status: ErrorStatus): MessageObject {
  return {
    name: `error.${status}`,
    title: status,
    summary: `The call failed with \`${status}\`. Each operation describes its errors.`,
    contentType: 'application/json',
    tags: [{ name: 'reply' }, { name: 'error' }],
    headers: ref('schemas', headersOfError(status).name),
    'x-amqp-properties': ref('schemas', 'ReplyProperties'),
    correlationId: CORRELATION_ID,
    payload: ref('schemas', bodyOfError(status).name),
    examples: [{ name: `error.${status}`, headers: { [HEADER.status]: status }, payload: ERROR_EXAMPLES[status] }],
  };
}

/** An event: a CloudEvent in structured mode, so that its attributes are in the body. */
export function eventMessage(event: Event<object>): MessageObject {
  const { type, service, purpose, example } = event;
  const { organizationId = API_KEY } = example as { organizationId?: string };
  const payload: CloudEvent<object> = {
    specversion: '1.0',
    id: EXAMPLE_REQUEST_ID,
    source: `/${service}`,
    type,
    subject: organizationId,
    time: EXAMPLE_TIME,
    datacontenttype: 'application/json',
    apikey: API_KEY,
    data: example,
  };
  return {
    name: type,
    title: type,
    summary: purpose,
    contentType: 'application/cloudevents+json',
    tags: [{ name: service }, { name: 'event' }],
    headers: ref('schemas', 'EventHeaders'),
    'x-amqp-properties': ref('schemas', 'EventProperties'),
    payload: ref('schemas', bodyOfEvent(event).name),
    bindings: { amqp: { messageType: type, bindingVersion: BINDING_VERSION } },
    examples: [{ name: type, headers: { [HEADER.apiKey]: API_KEY }, payload }],
  };
}

/** A dead letter, for `npm run dead-letters`. */
export function deadLetterMessage({ pattern, example }: Message<object, object>): MessageObject {
  const { message, status } = ERROR_EXAMPLES.NOT_FOUND;
  return {
    name: 'deadLetter',
    title: 'Dead letter',
    summary:
      'A dead letter: a command or event without a waiting caller that could not be executed. Body, headers and properties are as published; these headers are added. They count only together with the `user_id` of a service.',
    contentType: 'application/json',
    tags: [{ name: 'dead letter' }],
    headers: ref('schemas', 'DeadLetterHeaders'),
    'x-amqp-properties': ref('schemas', 'CommandProperties'),
    payload: ref('schemas', 'DeadLetterBody'),
    examples: [
      {
        name: 'deadLetter',
        headers: {
          [HEADER.apiKey]: API_KEY,
          [HEADER.deadStatus]: status,
          [HEADER.deadReason]: message,
          [HEADER.routingKey]: pattern,
          [HEADER.lane]: 'commands.1',
          [HEADER.attempt]: 1,
          [HEADER.firstFailedAt]: Date.parse(EXAMPLE_TIME),
          [HEADER.originUser]: 'billing',
        },
        payload: example.request,
      },
    ],
  };
}
