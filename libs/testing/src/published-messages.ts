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

/** What another team has of us: asyncapi.json as it is committed. */
const document = JSON.parse(readFileSync(join(process.cwd(), 'asyncapi.json'), 'utf8')) as AsyncApi;
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: 'doc', components: document.components });

/** Routing keys of the commands and queries that it says may be published. */
export const PUBLISHED_OPERATIONS = Object.entries(document.operations)
  .filter(([, { action }]) => action === 'receive')
  .map(([key]) => key);

/** The first example of a message. */
export const exampleOf = (name: string) => document.components.messages[name].examples[0];

/** What is wrong with a message, by the schemas that the document has for it. */
export function problemsOf(name: string, message: { headers?: unknown; payload: unknown }): unknown[] {
  const published = document.components.messages[name];
  return (['headers', 'payload'] as const).flatMap((part) => {
    const validate = ajv.compile(JSON.parse(JSON.stringify(published[part]).replaceAll('"#/', '"doc#/')) as object);
    return validate(message[part]) ? [] : (validate.errors ?? []);
  });
}
