import type { Options } from 'amqplib';
import * as fc from 'fast-check';
import { OPERATIONS, patternOf, type Operation } from '@app/testing/system/system';
import { changed, CORPUS, huge, nasty, spelled, type ValidValues } from './hostile-values';

/** `max_message_size` of the broker, in bytes: it closes the channel of a larger message without a confirm. */
const LARGEST_MESSAGE = 5 * 1024 * 1024;

/** One request over HTTP. */
export interface HttpCase {
  operation: Operation;
  method: string;
  path: string;
  body: Body;
  chunked: boolean;
  /** Names and values in turn, in addition to the credentials. */
  headers: string[];
  credentials: 'valid' | 'invalid';
}

/** Other bytes sent to the same port. */
export interface BytesCase {
  bytes: Buffer;
}

/** One message to exchange `commands`. */
export interface QueueCase {
  key: string;
  body: Body;
  properties: Options.Publish;
  headers: Record<string, unknown>;
  awaited: boolean;
  /** Whether it has a user_id; without one it may act for no tenant. */
  vouched: boolean;
}

// Characters that Node allows in a header.
const headerText = nasty
  .map((text) => [...text].map((c) => ((c.codePointAt(0) ?? 0) < 256 ? c : '?')).join(''))
  .filter(isHeaderText);

function isHeaderText(text: string): boolean {
  return !/[^\t\x20-\x7e\x80-\xff]/.test(text) && text.length < 4000;
}

interface Body {
  bytes: Buffer;
  /** Whether it conforms to the published document. */
  valid: boolean;
}

/** Bodies of an operation: valid, nearly valid and invalid. `wrap` adds the envelope of HTTP. */
const bodyOf = (values: ValidValues, one: Operation, wrap: (data: unknown) => unknown): fc.Arbitrary<Body> => {
  const valid = values.data(one).map(wrap);
  const doubtful = (bytes: fc.Arbitrary<Buffer>) => bytes.map((some) => ({ bytes: some, valid: false }));
  return fc.oneof(
    { arbitrary: valid.map((value) => ({ bytes: Buffer.from(JSON.stringify(value)), valid: true })), weight: 300 },
    { arbitrary: doubtful(changed(valid).map((value) => Buffer.from(JSON.stringify(value) ?? ''))), weight: 400 },
    { arbitrary: doubtful(spelled(fc.oneof(valid, changed(valid)))), weight: 300 },
    { arbitrary: doubtful(huge), weight: 1 },
  );
};

/** Requests of arbitrary clients, with headers that Node allows. */
export const httpCases = (values: ValidValues, canary: string): fc.Arbitrary<HttpCase> => {
  const mark = (text: string) => `${canary}${text}`;
  const header = fc.oneof(
    fc.constantFrom(
      ...[
        ['content-type', 'text/plain'],
        ['content-type', 'application/json; charset=latin1'],
        ['content-type', 'application/jsonx'],
      ],
      ...[
        ['content-encoding', 'gzip'],
        ['content-encoding', 'identity'],
        ['content-type', 'application/json; charset="UTF-8"'],
      ],
      ...[
        ['expect', 'a miracle'],
        ['upgrade', 'websocket'],
        ['te', 'trailers'],
        ['range', 'bytes=0-'],
      ],
    ),
    headerText.map((text) => ['x-request-id', text]),
    headerText.map((text) => ['idempotency-key', mark(text)]),
    fc.nat(20).map((number) => ['idempotency-key', mark(` ${number}`)]),
    fc
      .tuple(
        fc.constantFrom(
          'x-custom',
          'cookie',
          'authorization',
          'x-forwarded-for',
          'x-http-method-override',
          'x-notification-id',
          'accept',
          'referer',
        ),
        headerText,
      )
      .map(([name, text]) => [name, mark(text)]),
  );
  const casesOf = (one: Operation) =>
    fc.record<HttpCase>({
      operation: fc.constant(one),
      method: often('POST', fc.constantFrom('GET', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'PROPFIND', 'QUERY')),
      path: often(
        `/v1/${one}`,
        fc.oneof(
          nasty.map((text) => `/v1/${one}?${encodeURIComponent(mark(text.toWellFormed()))}`),
          nasty.map((text) => `/${encodeURIComponent(mark(text.toWellFormed()))}`),
          fc.constantFrom(
            `/v1/${one}/`,
            `/v1//${one}`,
            `/v1/${one}%2f`,
            `/v1/${one};a=b`,
            '/v1/users/../users/add',
            '/%',
            '/docs/%2e%2e/x',
          ),
        ),
      ),
      body: bodyOf(values, one, (data) => ({ data })),
      chunked: fc.boolean(),
      headers: fc.oneof(
        { arbitrary: fc.constant<string[]>([]), weight: 6 },
        { arbitrary: fc.array(header, { maxLength: 4 }).map((some) => some.flat()), weight: 4 },
      ),
      credentials: often<'valid' | 'invalid'>('valid', fc.constant('invalid')),
    });
  return fc.oneof(...OPERATIONS.map(casesOf));
};

const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 30 }, { arbitrary: other, weight: 1 });

/** Invalid HTTP. All cases are complete, so that the server need not wait for more bytes. */
export const bytesCases = (canary: string): fc.Arbitrary<BytesCase> => {
  const credentials = `x-svc-api-key: ${canary}\r\nx-svc-auth-token: ${canary}\r\n`;
  const lines = fc.array(fc.constantFrom(...CORPUS.headers), { minLength: 1, maxLength: 3 }).map((some) => some.join('\r\n'));
  return fc
    .oneof(
      fc.constantFrom(...CORPUS.requests),
      lines.map(
        (some) => `GET /v1/users/add?${canary} HTTP/1.1\r\nhost: x\r\n${credentials}connection: close\r\n${some}\r\n\r\n`,
      ),
      nasty.map((text) => `${text.replaceAll(/[\r\n]/g, ' ')} /${canary} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`),
      nasty.map((text) => `GET /${text.replaceAll(/[\r\n]/g, '')} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`),
      nasty.map(
        (text) => `GET / HTTP/1.1\r\nhost: x\r\nx-${text.replaceAll(/[\r\n]/g, '')}: ${canary}\r\nconnection: close\r\n\r\n`,
      ),
      fc
        .constantFrom(15_000, 16_500, 60_000)
        .map((length) => `GET /${'x'.repeat(length)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`),
      fc
        .constantFrom(500, 2001, 4000)
        .map((count) => `GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${'a: b\r\n'.repeat(count)}\r\n`),
    )
    .map((text) => ({ bytes: Buffer.from(text) }));
};

const tableValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    nasty.map((text) => text.toWellFormed()),
    fc.constantFrom<unknown>(
      null,
      true,
      false,
      0,
      -1,
      2 ** 31,
      2 ** 53,
      -(2 ** 53),
      1.5,
      Buffer.alloc(0),
      Buffer.from([0xff, 0]),
    ),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', '', '__proto__', 'x-api-key', 'CC'), tie('value'), { maxKeys: 3 }),
  ),
})).value;

const shortText = nasty.map((text) => text.toWellFormed()).filter((text) => Buffer.byteLength(text) <= 255);

/** Messages with hostile bodies, properties and headers that the broker accepts. */
export const queueCases = (values: ValidValues, apiKeys: readonly string[], canary: string): fc.Arbitrary<QueueCase> => {
  const headers = fc.oneof(
    { arbitrary: fc.constant({}), weight: 6 },
    {
      arbitrary: fc.dictionary(
        fc.constantFrom(
          'x-idempotency-key',
          'traceparent',
          'x-attempt',
          'x-crashes',
          'x-routing-key',
          'x-origin-user',
          'x-first-failed-at',
          'x-dead-reason',
          'x-dead-status',
          'x-death',
          'x-status',
          'x-custom',
          'x-delivery-count',
        ),
        fc.oneof(
          tableValue,
          nasty.map((text) => `${canary}${text.toWellFormed()}`),
        ),
        { maxKeys: 4 },
      ),
      weight: 3,
    },
    { arbitrary: fc.nat(20).map((number) => ({ 'x-idempotency-key': `${canary} ${number}` })), weight: 1 },
  );
  const apiKey = fc.oneof(
    { arbitrary: fc.constantFrom(...apiKeys), weight: 20 },
    {
      arbitrary: fc.oneof(
        tableValue,
        fc.constant(undefined),
        fc.nat(5).map((number) => `${canary} nobody ${number}`),
      ),
      weight: 1,
    },
  );
  const properties = fc.oneof(
    { arbitrary: fc.constant<Options.Publish>({}), weight: 2 },
    {
      arbitrary: fc.record(
        {
          contentType: shortText,
          contentEncoding: shortText,
          type: shortText,
          priority: fc.integer({ min: 0, max: 255 }),
          timestamp: fc.constantFrom(0, 1, 2 ** 31, 2 ** 52),
          persistent: fc.boolean(),
          appId: shortText,
        },
        { requiredKeys: [] },
      ),
      weight: 1,
    },
  );
  const casesOf = (one: Operation) =>
    fc
      .record({
        body: bodyOf(values, one, (data) => data).filter(({ bytes }) => bytes.length <= LARGEST_MESSAGE),
        properties,
        headers,
        apiKey,
        key: often(patternOf(one), fc.constantFrom('users.exists.v1', 'users.authenticate.v1')),
        messageId: fc.option(shortText, { freq: 10 }),
        awaited: fc.boolean(),
        vouched: often(true, fc.constant(false)),
        deadline: often<unknown>(null, tableValue),
      })
      .map(({ apiKey: tenant, messageId, awaited, vouched, deadline, ...rest }) => ({
        key: rest.key,
        awaited,
        vouched,
        body: rest.body,
        properties: { ...rest.properties, ...(messageId !== null && { messageId }) },
        headers: {
          ...rest.headers,
          ...(tenant !== undefined && { 'x-api-key': tenant }),
          ...(deadline !== null && { 'x-deadline': deadline }),
        },
      }));
  return fc.oneof(...OPERATIONS.map(casesOf));
};
