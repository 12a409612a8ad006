import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Parser } from '@asyncapi/parser';
import Ajv, { type ValidateFunction } from 'ajv';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { MAX_QUERY_BYTES } from '@app/contracts/json';
import { validateBody } from '@app/contracts/validate';
import { HEADER } from '@app/amqp/messages/headers';
import { messageProperties } from '@app/amqp/messages/message-properties';
import { BINDINGS, LANES, QUEUES } from '@app/rabbitmq/topology/topology';
import { asyncApiDocument } from './document';
import { schemaRows } from './schema-rows';

const document = asyncApiDocument();
const { messages, schemas } = document.components;
const found = Object.entries(messages);

const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: 'doc', components: document.components });
/** By schema: most of the time goes into compiling, and the same headers occur in many messages. */
const compiled = new Map<string, ValidateFunction>();
/** Problems of a value according to a schema, with the references of the document. */
const problemsOf = (schema: object, value: unknown) => {
  const text = JSON.stringify(schema).replaceAll('"#/', '"doc#/');
  const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text) as object);
  compiled.set(text, validate);
  return validate(value) ? [] : validate.errors;
};
const parser = new Parser();
const diagnosticsOf = async (text: string) => {
  const codes = (await parser.parse(text)).diagnostics.map(({ code }) => code);
  // The hint to use version 3.1 is ignored, because more tools read 3.0.
  return [...new Set(codes)].filter((code) => code !== 'asyncapi-latest-version').sort();
};

interface Sized {
  type?: string;
  properties?: Record<string, Sized>;
  items?: Sized;
  maxItems?: number;
  maxLength?: number;
}
/** A value that is no shorter as JSON than any that the schema allows: each character has an escape. */
const largestOf = ({ type, properties = {}, items = {}, maxItems, maxLength = 256 }: Sized): unknown => {
  if (type === 'object') return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, largestOf(field)]));
  return type === 'array' ? Array.from({ length: maxItems! }, () => largestOf(items)) : '"'.repeat(maxLength);
};

describe('asyncapi.json', () => {
  it('matches contracts and topology; npm run docs:generate writes it', () => {
    const committed = readFileSync(join(__dirname, '../../../../asyncapi.json'), 'utf8');
    expect(committed).toBe(`${JSON.stringify(document, null, 2)}\n`);
  });

  it('is valid AsyncAPI', async () => {
    const text = JSON.stringify(document);
    expect(await diagnosticsOf(text)).toEqual([]);
    const broken = text
      .replace('"is":"queue"', '"is":"topic"')
      .replace('#/components/schemas/CommandHeaders', '#/components/schemas/NoHeaders')
      .replaceAll('#/channels/users.add.v1/messages/users.add.v1', '#/channels/replies/messages/users.add.v1.reply');
    expect(await diagnosticsOf(broken)).toEqual([
      'asyncapi-document-resolved',
      'asyncapi3-operation-messages-from-referred-channel',
      'invalid-ref',
    ]);
  });

  it('has a name for the body and the headers of every message', async () => {
    const { document: parsed } = await parser.parse(JSON.stringify(document));
    const isAnonymous = (schema?: { id(): string }) => schema?.id().startsWith('<anonymous-schema') ?? true;
    const parts = parsed!.allMessages().all();
    expect(parts.filter((message) => isAnonymous(message.payload()) || isAnonymous(message.headers()))).toEqual([]);
  });

  it('has exactly the messages with their replies, the events, the errors and the dead letters', () => {
    const expected = [
      ...ALL_MESSAGES.flatMap(({ pattern }) => [pattern, `${pattern}.reply`]),
      ...ALL_EVENTS.map(({ type }) => type),
    ];
    expect(Object.keys(messages).filter((name) => !/^(error\.|deadLetter$)/.test(name))).toEqual(
      expect.arrayContaining(expected),
    );
    expect(found.filter(([name]) => !/^(error\.|deadLetter$)/.test(name))).toHaveLength(expected.length);
    for (const { pattern } of ALL_MESSAGES) expect(document.operations[pattern].action).toBe('receive');
    for (const { type } of ALL_EVENTS) expect(document.operations[type].action).toBe('send');
  });

  it.each(found)('has an example of %s that passes its schemas', (_, { payload, headers, examples }) => {
    expect(examples).not.toEqual([]);
    for (const example of examples) {
      expect(problemsOf(payload, example.payload)).toEqual([]);
      expect(problemsOf(headers, example.headers)).toEqual([]);
    }
  });

  it.each(ALL_MESSAGES.map((message) => [message.pattern, message] as const))(
    'has complete examples of %s that pass the validation of its contract',
    (_, { request, result, example }) => {
      expect(validateBody(request, example.request)).toEqual(example.request);
      expect(validateBody(result, example.result)).toEqual(example.result);
    },
  );

  it.each(ALL_EVENTS.map((event) => [event.type, event] as const))(
    'has a complete example of %s that passes the validation of its contract',
    (_, { data, example }) => expect(validateBody(data, example)).toEqual(example),
  );

  it.each(ALL_MESSAGES.filter(({ kind }) => kind === 'query').map((message) => [message.pattern, message] as const))(
    'has no body of %s that is longer than a query may be',
    (_, { request }) =>
      expect(JSON.stringify(largestOf(schemas[request.name] as Sized)).length).toBeLessThanOrEqual(MAX_QUERY_BYTES),
  );

  it('has schemas that refuse the same values as the validation', () => {
    for (const { pattern, request, example } of ALL_MESSAGES) {
      for (const field of Object.keys(example.request)) {
        const wrong = { ...example.request, [field]: [7] };
        expect(() => validateBody(request, wrong)).toThrow(field);
        expect([pattern, field, problemsOf(messages[pattern].payload, wrong)]).not.toEqual([pattern, field, []]);
      }
    }
  });

  it.each(found)('describes every field of %s', (_, { payload, headers, ...message }) => {
    const rows = [payload, headers, message['x-amqp-properties']].flatMap((schema) => schemaRows(schema, schemas));
    expect(rows.filter(({ description }) => description === '').map(({ path }) => path)).toEqual([]);
  });

  it('explains what may be wrong with any message beside the errors of its own', () => {
    for (const { pattern, errors = {} } of ALL_MESSAGES) {
      const { description } = document.operations[pattern];
      expect(description?.match(/^- `INVALID_ARGUMENT`: The body is not JSON/gm)).toHaveLength(1);
      for (const { when } of Object.values(errors)) expect(description).toContain(when);
    }
  });

  it('describes every header of the transport', () => {
    const explained = new Set(found.flatMap(([, { headers }]) => schemaRows(headers, schemas).map(({ path }) => path)));
    for (const name of Object.values(HEADER)) expect(explained).toContain(name);
  });

  it('describes every property that a caller sets', () => {
    const sent = messageProperties(ALL_MESSAGES[0], { requestId: 'r' }, { appId: 'a', userId: 'u' }, 'c', {
      replyTo: 'q',
      timeoutMs: 1000,
    });
    const names = Object.keys(sent).map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
    const described = Object.keys((schemas.CommandProperties as Sized).properties!);
    // `persistent` is the delivery mode.
    expect(names.filter((name) => !described.includes(name)).sort()).toEqual(['headers', 'persistent']);
  });

  it('names the exchanges of every operation, and the queues that are bound there, as declared', () => {
    const published = ['calls', ...LANES, 'events.own', 'events'];
    for (const { exchange, routingKey, queue } of BINDINGS.filter((binding) => published.includes(binding.exchange))) {
      const { bindings, 'x-exchanges': exchanges } = document.channels[routingKey];
      expect(exchanges?.find(({ name }) => name === exchange)?.queues).toContain(queue);
      const { exchange: first } = bindings.amqp as { exchange: { name: string } };
      expect(exchanges?.map(({ name }) => name)).toContain(first.name);
      expect(document.channels[queue]['x-arguments']).toEqual(QUEUES.find(({ name }) => name === queue)?.arguments);
      expect(Object.keys(document.channels[queue].messages)).toContain(routingKey);
    }
    const { 'user.added.v1': heard, 'notification.added.v1': unheard } = document.channels;
    expect(heard['x-exchanges']?.map(({ name }) => name)).toEqual(['events.own', 'events']);
    expect(unheard['x-exchanges']).toEqual([{ name: 'events', queues: [] }]);
  });
});
