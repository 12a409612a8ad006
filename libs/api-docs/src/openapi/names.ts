import { ACCESS_TYPES } from '@app/contracts/access';
import { ERROR_STATUSES } from '@app/contracts/error';
import { LEVELS } from '@app/contracts/memberships.list';

type Schema = Record<string, unknown>;

const REF = '#/components/schemas/';

/** The names of lists of values that occur in several schemas: with a class for each of them, a program would have to convert their values. */
const ENUMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ResultStatus: ['success'],
    ErrorStatus: ERROR_STATUSES,
    AccessType: ACCESS_TYPES,
    MembershipLevel: LEVELS,
    NotificationSource: ['custom'],
  }).map(([name, values]) => [JSON.stringify(values), name]),
);

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A name for classes: `users.add.v1` becomes `UsersAddV1`, and `NOT_FOUND` becomes `NotFound`. */
export const pascalCase = (name: string): string =>
  (name === name.toUpperCase() ? name.toLowerCase() : name)
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

/** The schemas with each list of values of {@link ENUMS} as a schema of its own. */
export function withSharedEnums(schemas: Record<string, unknown>): Record<string, object> {
  const shared: Record<string, object> = {};
  const replaced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replaced);
    if (!isSchema(value)) return value;
    const { type, enum: values, ...others } = value;
    const name = ENUMS.get(JSON.stringify(values));
    if (!name) return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, replaced(entry)]));
    shared[name] = { type, enum: values };
    return { $ref: REF + name, ...others };
  };
  return { ...(replaced(schemas) as Record<string, object>), ...shared };
}

/**
 * Gives a title to each schema, and to each object, enum, union and described reference inside it: programs that generate classes number what has
 * no name, or merge it with others of the same field. Some of them resolve references first, and so do not know the names of schemas.
 */
export const titled = (schemas: Record<string, object>): Record<string, object> =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, { title: name, ...inside(schema as Schema, name) }]));

function inside(schema: Schema, name: string): Schema {
  const inner = (value: unknown, path: string): unknown => {
    if (!isSchema(value)) return value;
    const title = titleOf(value, path);
    return { ...(title !== undefined && { title }), ...inside(value, path) };
  };
  const entries = Object.entries(schema).map(([key, value]) => {
    if (key === 'items' || key === 'additionalProperties') return [key, inner(value, `${name}Item`)];
    if (!(key === 'properties' || key === 'patternProperties') || !isSchema(value)) return [key, value];
    return [key, Object.fromEntries(Object.entries(value).map(([field, one]) => [field, inner(one, name + pascalCase(field))]))];
  });
  return Object.fromEntries(entries) as Schema;
}

function titleOf({ properties, enum: values, anyOf, allOf }: Schema, path: string): string | undefined {
  // The class is that of the reference, which has only a description beside it.
  if (Array.isArray(allOf)) return (allOf as { $ref: string }[])[0].$ref.slice(REF.length);
  return properties || values || anyOf ? (ENUMS.get(JSON.stringify(values)) ?? path) : undefined;
}
