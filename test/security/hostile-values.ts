import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { DELETE_COMBINATIONS } from '@app/contracts/notifications.delete';
import { FILTER_COMBINATIONS } from '@app/contracts/notifications.get';
import { encodeMomentToken, encodePageToken, encodeUserToken } from '@app/contracts/page-token';
import type { Operation } from '@app/testing/system/system';
import { DOCUMENT, requestSchema, type Schema } from './published-form';
import { deletionOf, erasureOf, updateOf, type Data } from './valid-requests';

/** Known hostile texts, bodies and pieces of HTTP. */
export const CORPUS = JSON.parse(readFileSync(join(__dirname, 'corpus.json'), 'utf8')) as Record<
  'strings' | 'documents' | 'requests' | 'headers',
  string[]
>;

export const nasty = fc.oneof(
  { arbitrary: fc.constantFrom(...CORPUS.strings), weight: 3 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 40 }), weight: 1 },
  { arbitrary: fc.constantFrom(256, 257, 320, 321, 2201, 10_000, 10_001).map((length) => 'x'.repeat(length)), weight: 1 },
  { arbitrary: fc.constantFrom(64, 65, 128).map((count) => '\u{1f600}'.repeat(count)), weight: 1 },
);

const storable = (text: string) => !text.includes('\0') && text.isWellFormed();
// eslint-disable-next-line no-control-regex -- it searches for control characters
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const isIdentifier = (text: string) =>
  text.trim() !== '' && storable(text) && !CONTROL.test(text) && Buffer.byteLength(text) <= 256;

/** Values that the published schemas allow. Every text contains the canary if there is room. */
export class ValidValues {
  private readonly marked = nasty.map((text) => `${this.canary} ${text}`);
  private readonly text = this.marked.filter(storable);
  private readonly identifier = fc.oneof(
    // Few organizations, so that cases share them; enough, so that none of them fills with pages of megabytes.
    { arbitrary: fc.integer({ min: 0, max: 200 }).map((number) => `${this.canary} ${number}`), weight: 4 },
    { arbitrary: this.marked.filter(isIdentifier), weight: 1 },
    { arbitrary: fc.constantFrom(...CORPUS.strings.filter(isIdentifier)), weight: 1 },
    { arbitrary: fc.constant('x'.repeat(256)), weight: 1 },
  );
  private readonly free = fc
    .dictionary(
      this.text.filter((key) => !key.includes('__proto__')),
      fc.jsonValue({ maxDepth: 4, stringUnit: 'grapheme' }),
      { maxKeys: 4 },
    )
    .filter((value) => !/"(__proto__|constructor|prototype)":/.test(JSON.stringify(value)));

  constructor(private readonly canary: string) {}

  /** The `data` of a call: what its schema allows, and also its rules without a schema, such as supported combinations of filters. */
  data(operation: Operation): fc.Arbitrary<Data> {
    const data = this.of(requestSchema(operation)) as fc.Arbitrary<Data>;
    const position = fc
      .tuple(fc.nat(2 ** 42), this.identifier)
      .map(([timestamp, notificationId]) => encodePageToken({ timestamp, notificationId }));
    switch (operation) {
      case 'users/data/delete':
        return data.map((all) => erasureOf(all, `${this.canary} erasures`));
      case 'users/get':
        return this.withToken(data, this.identifier.map(encodeUserToken));
      case 'notifications/get':
        return this.filtered(this.withToken(data, position), FILTER_COMBINATIONS);
      case 'notifications/inbox':
        return this.withToken(data, position);
      case 'notifications/delete': {
        const paged = this.withToken(data, fc.nat(2 ** 42).map(encodeMomentToken));
        return this.filtered(paged, DELETE_COMBINATIONS).map((all) => deletionOf(all, `${this.canary} deletions`));
      }
      case 'notifications/update':
        return fc.tuple(data, this.identifier, fc.boolean()).map(([all, userId, upTo]) => updateOf(all, userId, upTo));
      default:
        return data;
    }
  }

  private withToken(data: fc.Arbitrary<Data>, token: fc.Arbitrary<string>): fc.Arbitrary<Data> {
    return fc
      .tuple(data, fc.option(token))
      .map(([{ pageToken: _, ...others }, pageToken]) => ({ ...others, ...(pageToken !== null && { pageToken }) }));
  }

  private filtered(data: fc.Arbitrary<Data>, combinations: readonly (readonly string[])[]): fc.Arbitrary<Data> {
    return fc.tuple(data, fc.constantFrom(...combinations), this.identifier).map(([all, filters, id]) => {
      const { documentId, locationId, userId, notificationIds, ...others } = all;
      const given: Data = { documentId, locationId, userId, notificationIds };
      const chosen = filters.map((filter) => [filter, given[filter] ?? (filter === 'notificationIds' ? [id] : id)] as const);
      return { ...others, ...Object.fromEntries(chosen) };
    });
  }

  private of(schema: Schema): fc.Arbitrary<unknown> {
    if (schema.$ref) return this.of(DOCUMENT.components.schemas[schema.$ref.split('/').at(-1) ?? '']);
    if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => this.of(one)));
    if (schema.enum) return fc.constantFrom(...schema.enum);
    switch (schema.type) {
      case 'string':
        return this.string(schema);
      case 'boolean':
        return fc.boolean();
      case 'integer':
        return fc.integer({ min: schema.minimum, max: schema.maximum });
      case 'array':
        return fc.array(this.of(schema.items ?? {}), { minLength: schema.minItems, maxLength: 4 });
      case 'object':
        return this.object(schema);
      default:
        throw new Error(`No values are made for ${JSON.stringify(schema)}`);
    }
  }

  private string({ pattern, minLength = 0, maxLength = Infinity }: Schema): fc.Arbitrary<string> {
    if (pattern) return this.identifier;
    const full = maxLength < 1000 ? [fc.constant('\u{1f600}'.repeat(maxLength))] : [];
    return fc.oneof(
      this.text.map((text) => Array.from(text).slice(0, maxLength).join('')),
      ...full,
      fc.constant('x'.repeat(minLength)),
    );
  }

  private object({ properties = {}, required = [], patternProperties = {}, additionalProperties }: Schema): fc.Arbitrary<object> {
    const patterns = Object.entries(patternProperties);
    const ones = patterns
      .filter(([pattern]) => ONE_NAME.test(pattern))
      .map(([pattern, one]) => [pattern.slice(1, -1), one] as const);
    const all = [...Object.entries(properties), ...ones].map(([name, schema]) => [name, this.of(schema)] as const);
    const named = fc.record(Object.fromEntries(all), {
      requiredKeys: required,
      noNullPrototype: true,
    });
    const unnamed = patterns.find(([pattern]) => !ONE_NAME.test(pattern))?.[1] ?? additionalProperties;
    if (unnamed === true) return this.free;
    if (!unnamed) return named;
    return fc
      .tuple(
        fc.dictionary(
          this.text.filter((key) => !key.includes('__proto__')),
          this.of(unnamed),
          { maxKeys: 3 },
        ),
        named,
      )
      .map(([others, own]) => ({ ...others, ...own }));
  }
}

const ONE_NAME = /^\^\w+\$$/;
const WRONG_TYPES: unknown[] = [null, true, 0, -1, 1.5, 1e308, 2 ** 53, '', 'x', [], {}, [[]], [null], { a: null }, ['x'], [{}]];
const EXTRA_NAMES = [
  'data',
  'apiKey',
  'organization',
  'toString',
  'toJSON',
  'hasOwnProperty',
  '__proto__',
  'constructor',
  'prototype',
  '',
  '\0',
  'id',
  'then',
];

/** One change to a JSON value. `place` is the index among all nested values. */
type Change = (value: unknown, place: number) => unknown;

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.constantFrom(...WRONG_TYPES).map((wrong): Change => at(() => wrong)),
  nasty.map((text): Change => at(() => text)),
  nasty.map((text): Change => at((old) => (typeof old === 'string' ? old + text : text))),
  fc.constant<Change>(at(() => undefined)),
  fc
    .tuple(fc.oneof(fc.constantFrom(...EXTRA_NAMES), nasty), fc.oneof(fc.constantFrom(...WRONG_TYPES), nasty))
    .map(([name, extra]): Change => at((old) => withField(old, name, extra))),
  fc.constantFrom(2, 28, 31, 40).map((depth): Change => at((old) => wrapped(old, depth))),
  fc
    .constantFrom(1000, 1001)
    .map((length): Change => at((old) => (Array.isArray(old) && old.length > 0 ? Array<unknown>(length).fill(old[0]) : [old]))),
);

/** Defines an own property with any name: an assignment to `__proto__` would not create one. */
function withField(value: unknown, name: string, field: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { [name]: field };
  return Object.fromEntries([...Object.entries(value), [name, field]]);
}

function wrapped(value: unknown, depth: number): unknown {
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value };
  return value;
}

function at(alter: (old: unknown) => unknown): Change {
  return (root, place) => {
    const size = (value: unknown): number => 1 + childrenOf(value).reduce<number>((sum, child) => sum + size(child), 0);
    let left = place % size(root);
    const visit = (value: unknown): unknown => {
      if (left-- === 0) return alter(value);
      if (typeof value !== 'object' || value === null) return value;
      if (Array.isArray(value)) return value.map(visit);
      return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, visit(child)]));
    };
    return visit(root);
  };
}

const childrenOf = (value: unknown): unknown[] => (typeof value === 'object' && value !== null ? Object.values(value) : []);

/** A value and some changes to it. */
export const changed = (valid: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(valid, fc.array(fc.tuple(change, fc.nat(10_000)), { minLength: 1, maxLength: 3 }))
    .map(([value, changes]) => changes.reduce<unknown>((made, [alter, place]) => alter(made, place), value));

/** JSON and nearly valid JSON. */
export function spelled(value: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> {
  const json = value.map((one) => JSON.stringify(one) ?? '');
  const place = fc.nat(10_000);
  const inserted = fc.oneof(nasty, fc.constantFrom('1e999', '\\u0000', '\\ud800', '"', '\\', '}', ']', ',', '\u0000'));
  return fc.oneof(
    { arbitrary: json.map((text) => Buffer.from(text)), weight: 12 },
    { arbitrary: fc.tuple(json, place).map(([text, end]) => Buffer.from(text.slice(0, end % (text.length + 1)))), weight: 1 },
    {
      arbitrary: fc.tuple(json, place, inserted).map(([text, where, piece]) => {
        const middle = where % (text.length + 1);
        return Buffer.from(text.slice(0, middle) + piece + text.slice(middle));
      }),
      weight: 1,
    },
    {
      arbitrary: fc.tuple(json, place, fc.integer({ min: 0, max: 255 })).map(([text, where, byte]) => {
        const bytes = Buffer.from(text);
        if (bytes.length > 0) bytes[where % bytes.length] = byte;
        return bytes;
      }),
      weight: 2,
    },
    // Duplicate keys: the last one counts.
    { arbitrary: fc.tuple(json, json).map(([a, b]) => Buffer.from(`${a.slice(0, -1)},${b.slice(1)}`)), weight: 1 },
    { arbitrary: json.map((text) => Buffer.from(text, 'utf16le')), weight: 1 },
    { arbitrary: json.map((text) => Buffer.from(`\ufeff${text}`)), weight: 1 },
    { arbitrary: json.map((text) => Buffer.from(`\t\r\n ${text} \n`)), weight: 1 },
    { arbitrary: fc.constantFrom(...CORPUS.documents).map((text) => Buffer.from(text)), weight: 3 },
    { arbitrary: fc.tuple(json, fc.constantFrom(...CORPUS.documents)).map(([text, end]) => Buffer.from(text + end)), weight: 1 },
  );
}

const DEEP = '['.repeat(100_000);

/** Large bodies. They are rare, because they cost more. */
export const huge = fc.constantFrom(
  Buffer.from(DEEP + ']'.repeat(100_000)),
  Buffer.from(DEEP),
  Buffer.from(`{"data":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`),
  Buffer.from(`{"data":{"organizationId":"o","users":[${'{"userId":"u"},'.repeat(60_000)}{}]}}`),
  Buffer.alloc(1024 * 1024, ' '),
  Buffer.alloc(1024 * 1024 + 1, '1'),
  Buffer.alloc(1_500_000, 0),
);
