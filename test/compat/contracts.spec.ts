import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { fieldsOf } from '@app/contracts/fields';
import { validateBody } from '@app/contracts/validate';
import { schemasOf } from '@app/api-docs/openapi/schemas';
import { breaks, type Schemas } from './breaks';
import { EVENTS, EXCHANGES, FIXTURES } from './fixtures';

type Class = new () => object;

/** Whether missing and extended files are written: see docs/compatibility.md. */
const RECORDING = process.env.RECORD_FIXTURES === '1';

/** All bodies: class, direction and fixtures. */
const BODIES = [
  ...ALL_MESSAGES.flatMap(({ pattern, request, result }) => {
    const exchanges = EXCHANGES.filter((one) => one.pattern === pattern);
    const answered = exchanges.filter(({ reply }) => reply.headers['x-status'] === 'OK');
    return [
      {
        name: `request of ${pattern}`,
        type: request,
        direction: 'in' as const,
        values: exchanges.map((one) => one.request),
      },
      {
        name: `reply of ${pattern}`,
        type: result,
        direction: 'out' as const,
        values: answered.map(({ reply }) => reply.body),
      },
    ];
  }),
  ...ALL_EVENTS.map(({ type, data }) => {
    const values = EVENTS.filter(({ pattern }) => pattern === type).map(({ event }) => event.data);
    return { name: `event ${type}`, type: data, direction: 'out' as const, values };
  }),
];

const nestedIn = (type: Class, field: string) => fieldsOf(type).find(({ name }) => name === field)?.nested;

/** The value with one more field in every object of a contract class. */
function withUnknown(type: Class, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => withUnknown(type, one));
  const known = Object.entries(value as object).map(([field, inner]) => {
    const nested = nestedIn(type, field);
    return [field, nested ? withUnknown(nested(), inner) : (inner as unknown)];
  });
  return { ...Object.fromEntries(known), ofALaterVersion: { a: [1] } };
}

/** The paths of the fields of a class, and of a value. */
const pathsOf = (type: Class, path = ''): string[] =>
  fieldsOf(type).flatMap(({ name, nested }) => [`${path}${name}`, ...(nested ? pathsOf(nested(), `${path}${name}.`) : [])]);
function pathsIn(type: Class, value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => pathsIn(type, one, path));
  return Object.entries(value as object).flatMap(([field, inner]) => {
    const nested = nestedIn(type, field);
    return [`${path}${field}`, ...(nested ? pathsIn(nested(), inner, `${path}${field}.`) : [])];
  });
}

describe.each(BODIES)('the $name', ({ type, values }) => {
  it('has every field in one of its fixtures', () => {
    expect(values.length).toBeGreaterThan(0);
    const found = new Set(values.flatMap((value) => pathsIn(type, value)));
    expect(pathsOf(type).filter((path) => !found.has(path))).toEqual([]);
  });

  it('is accepted as published by every version, with the same meaning', () => {
    for (const value of values) expect(validateBody(type, value)).toEqual(value);
  });

  it('is the same without the fields that a later version may add', () => {
    for (const value of values) expect(validateBody(type, withUnknown(type, value))).toEqual(value);
  });
});

describe('the schemas of all bodies', () => {
  const file = join(FIXTURES, 'schemas.json');
  const now = schemasOf(BODIES.map(({ type }) => type)) as Schemas;
  const released = () => JSON.parse(readFileSync(file, 'utf8')) as Schemas;

  it('stay compatible: no field gone, no narrower input, no weaker output', () => {
    const old = released();
    const known = BODIES.filter(({ type }) => type.name in old);
    expect(known.flatMap(({ type, direction }) => breaks(type.name, direction, old, now))).toEqual([]);
  });

  it('match schemas.json: RECORD_FIXTURES=1 writes additions', () => {
    if (RECORDING) {
      const old = released();
      const broken = BODIES.filter(({ type }) => type.name in old).flatMap(({ type, direction }) =>
        breaks(type.name, direction, old, now),
      );
      if (broken.length === 0) writeFileSync(file, `${JSON.stringify(now, null, 2)}\n`);
    }
    expect(released()).toEqual(now);
  });
});

describe('a fixture', () => {
  /** In the format of `sha256sum`. */
  const file = join(FIXTURES, 'SHA256SUMS');
  const sums = [...EXCHANGES, ...EVENTS].map((one) => {
    const content = readFileSync(join(FIXTURES, one.file));
    return `${createHash('sha256').update(content).digest('hex')}  ${one.file}`;
  });

  it('is never changed or removed: a version that sends it may still run somewhere', () => {
    const kept = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    expect(kept.filter((line) => !sums.includes(line))).toEqual([]);
    if (RECORDING) writeFileSync(file, `${sums.toSorted().join('\n')}\n`);
    expect(sums.filter((line) => !readFileSync(file, 'utf8').includes(line))).toEqual([]);
  });
});

describe('breaks()', () => {
  const schema = (properties: object, required: string[] = []) => ({ A: { type: 'object', properties, required } }) as Schemas;
  const text = { type: 'string', maxLength: 5, minLength: 1, enum: ['a', 'b'], pattern: 'x' };

  it.each<[string, Schemas, Schemas, string[], string[]]>([
    ['nothing', schema({ f: text }, ['f']), schema({ f: text }, ['f']), [], []],
    ['a new field', schema({}), schema({ f: text }), [], []],
    ['a new required field', schema({}), schema({ f: text }, ['f']), ['A.f has become required'], []],
    ['a field that is gone', schema({ f: text }), schema({}), ['A.f is gone'], ['A.f is gone']],
    ['a field that may be absent', schema({ f: text }, ['f']), schema({ f: text }), [], ['A.f may be absent']],
    [
      'another type',
      schema({ f: { type: 'string' } }),
      schema({ f: { type: 'integer' } }),
      ['A.f has another type'],
      ['A.f has another type'],
    ],
    ['a smaller limit', schema({ f: text }), schema({ f: { ...text, maxLength: 4 } }), ['A.f has a smaller maxLength'], []],
    [
      'a limit where there was none',
      schema({ f: { type: 'string' } }),
      schema({ f: { type: 'string', minLength: 1 } }),
      ['A.f has a greater minLength'],
      [],
    ],
    ['a greater limit', schema({ f: text }), schema({ f: { ...text, maxLength: 6 } }), [], []],
    ['a value less', schema({ f: text }), schema({ f: { ...text, enum: ['a'] } }), ['A.f takes b no more'], []],
    ['a value more', schema({ f: text }), schema({ f: { ...text, enum: ['a', 'b', 'c'] } }), [], ['A.f may be c']],
    ['another pattern', schema({ f: text }), schema({ f: { ...text, pattern: 'y' } }), ['A.f has another pattern'], []],
  ])('finds %s', (_, old, now, incoming, outgoing) => {
    expect([breaks('A', 'in', old, now), breaks('A', 'out', old, now)]).toEqual([incoming, outgoing]);
  });

  it('looks into lists, classes and fields by patterns', () => {
    const list = (items: object) => ({ ...schema({ l: { type: 'array', items } }), B: schema({ f: text }).A }) as Schemas;
    const now = { ...list({ $ref: '#/B' }), B: { type: 'object', properties: {} } } as Schemas;
    expect(breaks('A', 'in', list({ $ref: '#/B' }), now)).toEqual(['A.l[].f is gone']);
    const named = (type: string) => ({ A: { type: 'object', patternProperties: { '^user$': { type } } } });
    expect(breaks('A', 'in', named('object'), named('string'))).toEqual(['A.^user$ has another type']);
  });
});
