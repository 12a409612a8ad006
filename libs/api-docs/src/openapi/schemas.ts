import { defaultMetadataStorage } from 'class-transformer/cjs/storage';
import { validationMetadatasToSchemas } from 'class-validator-jsonschema';

type Json = unknown;
type Schemas = Record<string, Json>;

const PREFIX = '#/components/schemas/';

export const schemaRef = (type: new () => object) => ({ $ref: PREFIX + type.name });

/** Schemas of contract classes by name, with all classes that they refer to. The decorators are the source of schemas and validation. */
export function schemasOf(types: (new () => object)[]): Schemas {
  const all = validationMetadatasToSchemas({
    classTransformerMetadataStorage: defaultMetadataStorage,
    refPointerPrefix: PREFIX,
  }) as Schemas;
  const wanted: Schemas = {};
  const add = (name: string) => {
    if (name in wanted) return;
    if (!(name in all)) throw new Error(`No contract class has the schema ${name}.`);
    wanted[name] = withoutBuiltIns(all[name]);
    for (const ref of refsIn(wanted[name])) add(ref);
  };
  for (const type of types) add(type.name);
  return wanted;
}

/** Removes references to the classes Array and Object, which TypeScript's metadata adds to properties of these types. */
function withoutBuiltIns(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutBuiltIns);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([key, entry]) => !(key === '$ref' && /\/(Array|Object)$/.test(String(entry))));
  return Object.fromEntries(kept.map(([key, entry]) => [key, withoutBuiltIns(entry)]));
}

function refsIn(value: Json): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, entry]) =>
    key === '$ref' && typeof entry === 'string' ? [entry.slice(PREFIX.length)] : refsIn(entry),
  );
}
