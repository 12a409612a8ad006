/** The part of JSON Schema that the contract classes use. */
export interface Schema {
  $ref?: string;
  type?: string;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: string[];
  pattern?: string;
  [keyword: string]: unknown;
}

export type Schemas = Record<string, Schema>;

const AT_MOST = ['maxLength', 'maxItems', 'maximum'];
const AT_LEAST = ['minLength', 'minItems', 'minimum'];

/**
 * Finds changes that break a program that knows only the old schemas.
 *
 * @param direction `in`: the program sends it; `out`: the program receives it
 * @returns a sentence for each problem
 */
export function breaks(name: string, direction: 'in' | 'out', old: Schemas, now: Schemas): string[] {
  const compare = (before: Schema, after: Schema | undefined, path: string): string[] => {
    if (!after) return [`${path} is gone`];
    if (before.$ref !== undefined && after.$ref !== undefined)
      return compare(target(before.$ref, old), target(after.$ref, now), path);
    const problems = before.type === after.type && !before.$ref === !after.$ref ? [] : [`${path} has another type`];
    problems.push(...(direction === 'in' ? narrowed(before, after, path) : widened(before, after, path)));
    for (const names of ['properties', 'patternProperties'] as const)
      for (const [field, schema] of Object.entries(before[names] ?? {}))
        problems.push(...compare(schema, after[names]?.[field], `${path}.${field}`));
    if (before.items) problems.push(...compare(before.items, after.items, `${path}[]`));
    return problems;
  };
  return compare({ $ref: `/${name}` }, { $ref: `/${name}` }, name);
}

const target = (ref: string, schemas: Schemas): Schema => schemas[ref.slice(ref.lastIndexOf('/') + 1)] ?? {};

/** Values that were accepted and are now refused. */
function narrowed(before: Schema, after: Schema, path: string): string[] {
  const problems = added(before.required, after.required).map((field) => `${path}.${field} has become required`);
  for (const keyword of AT_MOST)
    if (number(after[keyword], Infinity) < number(before[keyword], Infinity)) problems.push(`${path} has a smaller ${keyword}`);
  for (const keyword of AT_LEAST)
    if (number(after[keyword], -Infinity) > number(before[keyword], -Infinity)) problems.push(`${path} has a greater ${keyword}`);
  if (after.pattern !== undefined && after.pattern !== before.pattern) problems.push(`${path} has another pattern`);
  if (after.enum) problems.push(...added(after.enum, before.enum).map((value) => `${path} takes ${value} no more`));
  return problems;
}

/** Guarantees of the old schema that the new one does not give. */
function widened(before: Schema, after: Schema, path: string): string[] {
  return [
    ...added(after.required, before.required).map((field) => `${path}.${field} may be absent`),
    ...(before.enum ? added(before.enum, after.enum).map((value) => `${path} may be ${value}`) : []),
  ];
}

const added = (before: string[] = [], after: string[] = []) => after.filter((one) => !before.includes(one));
const number = (value: unknown, none: number) => (typeof value === 'number' ? value : none);
