type Schema = Record<string, unknown>;

const REF = '#/components/schemas/';

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A name for classes: `users.add.v1` becomes `UsersAddV1`, and `NOT_FOUND` becomes `NotFound`. */
export const pascalCase = (name: string): string =>
  (name === name.toUpperCase() ? name.toLowerCase() : name)
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

/**
 * Gives a title to each object, enum and described reference inside a schema: programs that generate classes number what has no name.
 *
 * @param name of the schema itself
 */
export function titled(schema: Schema, name: string): Schema {
  const inner = (value: unknown, path: string): unknown => {
    if (!isSchema(value)) return value;
    const title = titleOf(value, path);
    return { ...(title !== undefined && { title }), ...titled(value, path) };
  };
  const entries = Object.entries(schema).map(([key, value]) => {
    if (key === 'items' || key === 'additionalProperties') return [key, inner(value, `${name}Item`)];
    if (!(key === 'properties' || key === 'patternProperties') || !isSchema(value)) return [key, value];
    return [key, Object.fromEntries(Object.entries(value).map(([field, one]) => [field, inner(one, name + pascalCase(field))]))];
  });
  return Object.fromEntries(entries) as Schema;
}

function titleOf({ properties, enum: values, allOf }: Schema, path: string): string | undefined {
  // The class is that of the reference, which has only a description beside it.
  if (Array.isArray(allOf)) return (allOf as { $ref: string }[])[0].$ref.slice(REF.length);
  return properties || values ? path : undefined;
}
