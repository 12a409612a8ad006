import 'reflect-metadata';
import { asyncApiDocument } from './asyncapi/document';
import { openApiDocument } from './openapi/document';

interface Schema {
  title?: string;
  type?: string;
  format?: string;
  maximum?: number;
  enum?: unknown[];
  properties?: object;
  anyOf?: object[];
  additionalProperties?: unknown;
  pattern?: string;
  patternProperties?: Record<string, Schema>;
}

const schemasIn = (value: unknown): Schema[] =>
  typeof value === 'object' && value !== null ? [value, ...Object.values(value).flatMap(schemasIn)] : [];

describe.each([
  ['openapi.json', openApiDocument()],
  ['asyncapi.json', asyncApiDocument()],
])('a client that is generated from %s', (_, { components }) => {
  const schemas = schemasIn(components.schemas);

  it('has a class for every object, union and list of values, with a name that no other has', () => {
    const classes = schemas.filter(({ properties, enum: values, anyOf }) => properties ?? anyOf ?? Array.isArray(values));
    expect(classes.filter(({ title }) => !title)).toEqual([]);
    const titles = new Set(classes.map(({ title, enum: values }) => JSON.stringify([title, values])));
    expect(new Set(classes.map(({ title }) => title)).size).toBe(titles.size);
    const others = classes.filter(({ enum: values }) => !values).map(({ title }) => title);
    expect(others.filter((title, index) => others.indexOf(title) !== index)).toEqual([]);
  });

  it('has one class for a list of values, wherever it occurs', () => {
    const lists = schemas.filter(({ enum: values }) => Array.isArray(values));
    const named = new Set(lists.map(({ title, enum: values }) => JSON.stringify([title, values])));
    expect(named.size).toBe(new Set(lists.map(({ enum: values }) => JSON.stringify(values))).size);
  });

  it('compiles in TypeScript, and has room for every field: unnamed fields have no named ones beside them', () => {
    expect(schemas.filter(({ properties, additionalProperties }) => properties && additionalProperties)).toEqual([]);
  });

  it('reads answers of a later version, which may have more fields', () => {
    expect(schemas.filter(({ additionalProperties }) => additionalProperties === false)).toEqual([]);
  });

  it('has 64 bits for every integer that may need them', () => {
    const integers = schemas.filter(({ type }) => type === 'integer');
    expect(integers.some(({ format }) => format === undefined)).toBe(true);
    const isNarrow = ({ format, maximum = Infinity }: Schema) => format !== 'int64' && maximum >= 2 ** 31;
    expect(integers.filter(isNarrow)).toEqual([]);
  });

  it('has no enumeration of booleans, of which generators make code that does not compile', () => {
    const values = schemas.flatMap((schema) => (Array.isArray(schema.enum) ? schema.enum : []));
    expect(new Set(values.map((value) => typeof value))).toEqual(new Set(['string']));
  });

  it('has no pattern with a lookahead or an escape that RE2 and the expressions of Rust do not know', () => {
    const patterns = new Set(
      schemas.flatMap(({ pattern, patternProperties = {} }) => [
        ...(typeof pattern === 'string' ? [pattern] : []),
        ...Object.keys(patternProperties),
      ]),
    );
    expect(patterns.size).toBeGreaterThan(1);
    for (const pattern of patterns) expect(pattern).not.toMatch(/\(\?|\\u/);
  });
});
