import { Type } from 'class-transformer';
import { ValidateBy, ValidateIf, ValidateNested } from 'class-validator';
import { JSONSchema } from 'class-validator-jsonschema';

/** Limits of the API, the same over HTTP and over AMQP. */
export const LIMITS = {
  /** Bytes of UTF-8 in an identifier. A btree key above 2,704 bytes fails the insert, and an index holds up to five identifiers. */
  identifierBytes: 256,
  /** Code points in a name or an e-mail address. */
  nameLength: 320,
  /** Code points in an initial: one grapheme may be an emoji of many code points. */
  initialLength: 32,
  /** Code points in a headline template or a body message. */
  messageLength: 10_000,
  /** Bytes of UTF-8 JSON in template data, and in notification source data. */
  dataBytes: 64 * 1024,
  /** Users, notifyUsers or notificationIds in one call. */
  listLength: 1000,
} as const;

/** Returns the problem of a value, as the rest of a sentence that starts with the field's path; undefined when the value is valid. */
export type Check = (value: unknown) => string | undefined;

type Schema = Extract<Parameters<typeof JSONSchema>[0], object> & { patternProperties?: Record<string, object> };

// eslint-disable-next-line no-control-regex -- it searches for control characters
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

export const identifierProblem: Check = (value) => {
  if (typeof value !== 'string') return ' must be a string';
  if (value.trim() === '') return ' must not be blank';
  if (Buffer.byteLength(value) > LIMITS.identifierBytes) return ` must be at most ${LIMITS.identifierBytes} bytes of UTF-8`;
  if (CONTROL.test(value)) return ' must not contain control characters';
  if (!value.isWellFormed()) return ' must be well-formed Unicode';
  return undefined;
};

/** A string of `min` to `max` code points; `singleLine` refuses control characters. */
export const textProblem =
  (max: number, { min = 0, singleLine = false } = {}): Check =>
  (value) => {
    if (typeof value !== 'string') return ' must be a string';
    if (value.length < min) return ' must not be empty';
    // A code point is one or two UTF-16 units, so count exactly only where it matters: a text may have a megabyte.
    if (value.length > 2 * max || (value.length > max && Array.from(value).length > max))
      return ` must be at most ${max} characters`;
    if (singleLine && CONTROL.test(value)) return ' must not contain control characters';
    return undefined;
  };

export const objectProblem: Check = (value) => (isPlainObject(value) ? undefined : ' must be an object');

/** An object of at most {@link LIMITS.dataBytes} as JSON. */
export const dataProblem: Check = (value) =>
  objectProblem(value) ??
  (Buffer.byteLength(JSON.stringify(value)) > LIMITS.dataBytes
    ? ` must be at most ${LIMITS.dataBytes} bytes of UTF-8 as JSON`
    : undefined);

const listProblem =
  (item: Check, { min = 0, max = LIMITS.listLength }: { min?: number; max?: number } = {}): Check =>
  (value) => {
    if (!Array.isArray(value)) return ' must be an array';
    if (value.length < min) return ' must not be empty';
    if (value.length > max) return ` must have at most ${max} entries`;
    for (let index = 0; index < value.length; index++) {
      const problem = item(value[index]);
      if (problem) return `[${index}]${problem}`;
    }
    return undefined;
  };

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

interface FieldOptions {
  /** The field may be absent. null does not count as absent. */
  optional?: boolean;
}

/** A field of a contract class. */
export interface ContractField {
  readonly name: string;
  readonly check: Check;
  readonly optional: boolean;
  /** The contract class of its object or list of objects; undefined: the value is kept unchanged. */
  readonly nested?: () => new () => object;
}

const FIELDS = new WeakMap<object, readonly ContractField[]>();
const NO_FIELDS: readonly ContractField[] = [];

/** The fields of a contract class, in the order in which it declares them. The class that it extends comes first. */
export const fieldsOf = (type: new () => object): readonly ContractField[] => fieldsAt(type.prototype as object);

function fieldsAt(prototype: object | null): readonly ContractField[] {
  if (prototype === null) return NO_FIELDS;
  return FIELDS.get(prototype) ?? fieldsAt(Object.getPrototypeOf(prototype) as object | null);
}

function register(prototype: object, field: ContractField): void {
  const others = fieldsAt(prototype).filter(({ name }) => name !== field.name);
  FIELDS.set(prototype, [...others, field]);
}

/** Declares a field with its check and its JSON Schema. All decorators below use it. */
export function Field(
  check: Check,
  schema: Schema,
  { optional = false }: FieldOptions = {},
  nested?: ContractField['nested'],
): PropertyDecorator {
  const validate = ValidateBy({
    name: 'field',
    validator: {
      validate: (value) => check(value) === undefined,
      defaultMessage: (args) => {
        const problem = check(args?.value) ?? '';
        return args?.value === undefined ? ` is required and${problem}` : problem;
      },
    },
  });
  return (target, key) => {
    register(target, { name: key as string, check, optional, nested });
    if (optional) ValidateIf((_, value) => value !== undefined)(target, key);
    validate(target, key);
    JSONSchema(schema)(target, key as string);
  };
}

const IDENTIFIER_SCHEMA = {
  type: 'string',
  minLength: 1,
  maxLength: LIMITS.identifierBytes,
  // JSON Schema cannot count bytes. The pattern says what it can, without a lookahead, which many languages lack; the check decides.
  pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$',
} as const;

/** A field of a reply: documented, never checked. */
export const Described = (schema: Schema, options?: FieldOptions) => Field(() => undefined, schema, options);

/** The `status` of a result. */
export const Success = (description = 'Always the same: a failed call is answered with an error.', options?: FieldOptions) =>
  Described({ type: 'string', enum: ['success'], description }, options);

/** Generated clients take an integer without this format for 32 bits, which times in milliseconds exceed. */
export const INT64 = { type: 'integer', format: 'int64' } as const;
const MAX_INT32 = 2 ** 31 - 1;

/** A time in epoch milliseconds or a version, in a reply or an event. */
export const Int64 = (description: string, { minimum, ...options }: FieldOptions & { minimum?: number } = {}) =>
  Described({ ...INT64, ...(minimum !== undefined && { minimum }), description }, options);

/** Any identifier: 1-256 bytes of UTF-8, not blank, no control characters, well-formed. */
export const Identifier = (description: string, options?: FieldOptions) =>
  Field(identifierProblem, { ...IDENTIFIER_SCHEMA, description }, options);

/** Between `min` and `max` identifiers; by default at most 1000. */
export const Identifiers = (
  description: string,
  { min = 0, max = LIMITS.listLength, ...options }: FieldOptions & { min?: number; max?: number } = {},
) =>
  Field(
    listProblem(identifierProblem, { min, max }),
    { type: 'array', items: IDENTIFIER_SCHEMA, maxItems: max, ...(min && { minItems: min }), description },
    options,
  );

/** Text of at most `max` code points. */
export const Text = (description: string, max: number, { min = 0, ...options }: FieldOptions & { min?: number } = {}) =>
  Field(textProblem(max, { min }), { type: 'string', ...(min && { minLength: min }), maxLength: max, description }, options);

export const Flag = (description: string, options?: FieldOptions) =>
  Field((value) => (typeof value === 'boolean' ? undefined : ' must be a boolean'), { type: 'boolean', description }, options);

export const WholeNumber = (description: string, min: number, max: number, options?: FieldOptions) =>
  Field(
    (value) =>
      Number.isInteger(value) && (value as number) >= min && (value as number) <= max
        ? undefined
        : ` must be a whole number from ${min} to ${max}`,
    { ...(max > MAX_INT32 ? INT64 : { type: 'integer' }), minimum: min, maximum: max, description },
    options,
  );

export const OneOf = (description: string, values: readonly string[], options?: FieldOptions) =>
  Field(
    (value) => (values.includes(value as string) ? undefined : ` must be one of: ${values.join(', ')}`),
    { type: 'string', enum: [...values], description },
    options,
  );

/** A free JSON object. */
export const Data = (description: string, options?: FieldOptions) =>
  Field(dataProblem, { type: 'object', additionalProperties: true, description }, options);

/** An object of another contract class. */
export function Nested(type: () => new () => object, description: string, options?: FieldOptions): PropertyDecorator {
  return (target, key) => {
    // ValidateNested alone accepts a missing object and null.
    Field(objectProblem, { description }, options, type)(target, key);
    ValidateNested()(target, key);
    Type(type)(target, key);
  };
}

/** An array of at most 1000 objects of another contract class. */
export function NestedList(
  type: () => new () => object,
  description: string,
  { min = 0, ...options }: FieldOptions & { min?: number } = {},
): PropertyDecorator {
  return (target, key) => {
    const schema = { description, maxItems: LIMITS.listLength, ...(min && { minItems: min }) };
    // ValidateNested alone lets null entries through.
    Field(listProblem(objectProblem, { min }), schema, options, type)(target, key);
    ValidateNested({ each: true })(target, key);
    Type(type)(target, key);
  };
}
