import 'reflect-metadata';
import { asyncApiDocument } from './asyncapi/document';
import { openApiDocument } from './openapi/document';

interface Schema {
  type?: string;
  format?: string;
  maximum?: number;
  enum?: unknown[];
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
