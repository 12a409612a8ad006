import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';

interface PublishedMessage {
  payload: object;
  headers: object;
  examples: { headers: Record<string, unknown>; payload: object }[];
}

interface AsyncApi {
  operations: Record<string, { action: 'receive' | 'send' }>;
  components: { messages: Record<string, PublishedMessage> };
}

/** The committed asyncapi.json, which other teams use. */
const document = JSON.parse(readFileSync(join(process.cwd(), 'asyncapi.json'), 'utf8')) as AsyncApi;
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: 'doc', components: document.components });

/** Routing keys of the commands and queries that it allows to publish. */
export const PUBLISHED_OPERATIONS = Object.entries(document.operations)
  .filter(([, { action }]) => action === 'receive')
  .map(([key]) => key);

/** The first example of a message. */
export const exampleOf = (name: string) => document.components.messages[name].examples[0];

/** Problems of a message according to the schemas in the document. */
export function problemsOf(name: string, message: { headers?: unknown; payload: unknown }): unknown[] {
  const published = document.components.messages[name];
  return (['headers', 'payload'] as const).flatMap((part) => {
    const validate = ajv.compile(JSON.parse(JSON.stringify(published[part]).replaceAll('"#/', '"doc#/')) as object);
    return validate(message[part]) ? [] : (validate.errors ?? []);
  });
}
