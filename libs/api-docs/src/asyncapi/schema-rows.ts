import { LIMITS } from '@app/contracts/fields';

/** One row of a table of fields: of a body, headers or properties. */
export interface SchemaRow {
  /** Path from the root, for example `users[].userId`; `*` stands for any key. */
  path: string;
  required: boolean;
  /** Type and limits. */
  type: string;
  description: string;
}

interface Schema {
  $ref?: string;
  allOf?: Schema[];
  anyOf?: Schema[];
  type?: string;
  const?: string | number;
  enum?: (string | number | boolean)[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  /** Patterns of one name each, and at most one for all other names. */
  patternProperties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  description?: string;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}

const REF = '#/components/schemas/';
const ONE_NAME = /^\^\w+\$$/;

/** The fields of a schema. Nested fields follow their parent. */
export function schemaRows(schema: object, schemas: Record<string, object>): SchemaRow[] {
  const resolved = (value: Schema): Schema => {
    const { $ref, allOf = [], ...own } = value;
    const parts = [...($ref ? [schemas[$ref.slice(REF.length)] as Schema] : []), ...allOf].map(resolved);
    const properties: Record<string, Schema> = {};
    for (const part of [...parts, own]) {
      for (const [name, property] of Object.entries(part.properties ?? {})) {
        properties[name] = name in properties ? { allOf: [properties[name], property] } : property;
      }
    }
    const merged = Object.assign({}, ...parts, own) as Schema;
    return Object.keys(properties).length > 0 ? { ...merged, properties } : merged;
  };
  const inside = (value: Schema, path: string): SchemaRow[] => {
    const { properties = {}, required = [], patternProperties = {}, additionalProperties, items } = resolved(value);
    const patterns = Object.entries(patternProperties);
    const ones = patterns
      .filter(([pattern]) => ONE_NAME.test(pattern))
      .map(([pattern, one]) => [pattern.slice(1, -1), one] as const);
    const others = patterns.find(([pattern]) => !ONE_NAME.test(pattern))?.[1] ?? additionalProperties;
    const rows = [...Object.entries(properties), ...ones].flatMap(([name, property]) =>
      rowsOf(property, path ? `${path}.${name}` : name, required.includes(name)),
    );
    if (items && hasFields(resolved(items))) rows.push(...inside(items, `${path}[]`));
    if (typeof others === 'object') rows.push(...rowsOf(others, path ? `${path}.*` : '*', false));
    return rows;
  };
  const rowsOf = (value: Schema, path: string, required: boolean): SchemaRow[] => {
    const own = resolved(value);
    return [
      { path, required, type: typeOf(own, resolved), description: own.description ?? '' },
      ...[own, ...(own.anyOf ?? [])].flatMap((one) => inside(one, path)),
    ];
  };
  return inside(schema, '');
}

const hasFields = ({ properties, additionalProperties }: Schema) =>
  properties !== undefined || typeof additionalProperties === 'object';

function typeOf(schema: Schema, resolved: (value: Schema) => Schema): string {
  const { anyOf, items, pattern, minLength = 0, maxLength, minimum, maximum, minItems = 0, maxItems } = schema;
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(' or ');
  if (anyOf) return anyOf.map((one) => typeOf(resolved(one), resolved)).join(' or ');
  switch (schema.type) {
    case 'string':
      // The word is clearer than the pattern of an identifier.
      if (maxLength === LIMITS.identifierBytes) return 'identifier';
      if (schema.format) return `string (${schema.format})`;
      if (pattern) return `string, \`${pattern}\``;
      return maxLength === undefined ? 'string' : `string, ${minLength}-${maxLength} characters`;
    case 'integer':
      if (minimum === undefined) return 'integer';
      return maximum === undefined ? `integer from ${minimum}` : `integer, ${minimum}-${maximum}`;
    case 'array': {
      const what = items ? typeOf(resolved(items), resolved) : 'anything';
      return maxItems === undefined ? `list of ${what}` : `list of ${minItems}-${maxItems}: ${what}`;
    }
    default:
      return schema.type ?? 'anything';
  }
}
