import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import type { Operation } from '@app/testing/system/system';

export interface Schema {
  $ref?: string;
  type?: string;
  anyOf?: Schema[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  /** Patterns of one name each, and at most one for all other names. */
  patternProperties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  pattern?: string;
}

interface Document {
  components: { schemas: Record<string, Schema> };
  paths: Record<string, { post: { responses: Record<string, unknown> } }>;
}

/** The published document for callers. */
export const DOCUMENT = JSON.parse(readFileSync(join(process.cwd(), 'openapi.json'), 'utf8')) as Document;

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ ...DOCUMENT, $id: 'openapi' });
const validators = new Map<string, ValidateFunction>();

function validatorAt(pointer: string): ValidateFunction {
  const known = validators.get(pointer);
  if (known) return known;
  const made = ajv.compile({ $ref: `openapi#${pointer}` });
  validators.set(pointer, made);
  return made;
}

/** @returns the problem of a value according to a schema in the document; undefined when it is valid */
export function problemAt(pointer: string, value: unknown): string | undefined {
  const validate = validatorAt(pointer);
  return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

const inPath = (path: string) => path.replaceAll('~', '~0').replaceAll('/', '~1');

/** The problem of the answer to an operation; undefined when it is valid. */
export function problemOfAnswer(operation: Operation | undefined, status: number, body: unknown): string | undefined {
  const path = `/v1/${operation}`;
  const described = operation && DOCUMENT.paths[path].post.responses[String(status)];
  const pointer = described
    ? `/paths/${inPath(path)}/post/responses/${status}/content/application~1json/schema`
    : '/components/schemas/Failure';
  return problemAt(pointer, body) ?? extraIn(status, body as { error?: object });
}

/** Forbids additional fields: the document allows future fields, but today there are no others. */
function extraIn(status: number, body: { error?: object }): string | undefined {
  const [key, ...others] = Object.keys(body);
  if (others.length > 0 || key !== (status === 200 ? 'result' : 'error')) return `has the keys ${Object.keys(body).join()}`;
  const extra = Object.keys(body.error ?? {}).filter((name) => !['message', 'status', 'details'].includes(name));
  return extra.length > 0 ? `error has the keys ${extra.join()}` : undefined;
}

const schemaOf = (operation: Operation) => HTTP_MESSAGES.find(({ http }) => http.path === `/v1/${operation}`)!.request.name;

export const requestSchema = (operation: Operation): Schema => DOCUMENT.components.schemas[schemaOf(operation)];

export const problemOfRequest = (operation: Operation, data: unknown): string | undefined =>
  problemAt(`/components/schemas/${schemaOf(operation)}`, data);
