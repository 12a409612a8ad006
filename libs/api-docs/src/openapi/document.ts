import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { LIMITS } from '@app/contracts/fields';
import { MAX_DEPTH, MAX_VALUES } from '@app/contracts/json';
import { MOST_ERASED } from '@app/contracts/users.erase';
import { envelopes } from './envelopes';
import { ERROR_TABLE, FAILURE_SCHEMAS } from './errors';
import { titled, withSharedEnums } from './names';
import { pathItemOf } from './operations';
import { schemasOf } from './schemas';

const REPEATING = `After a lost connection or a 504 the outcome is unknown. A call with an \`Idempotency-Key\`, where the operation
takes one, may be repeated for 24 hours: it gets the first answer again. A notification with a \`notificationId\` may be repeated too.`;

const LIMITS_TEXT = `- A body has at most 1 MiB of UTF-8, at most ${MAX_DEPTH} levels, at most ${MAX_VALUES} values (an empty object or list counts twice), no NUL characters and no key named \`__proto__\`, \`constructor\` or \`prototype\`.
- An identifier has 1-${LIMITS.identifierBytes} bytes of UTF-8, is not blank and has no control characters.
- A list of users, notifications or ids has at most ${LIMITS.listLength} entries, \`userIds\` of users/data/delete at most ${MOST_ERASED}.
- Names and e-mail addresses have at most ${LIMITS.nameLength} characters, initials ${LIMITS.initialLength}, templates and messages ${LIMITS.messageLength}; \`displayHeadlineMessageTemplateData\` and
  \`notificationSourceData\` at most ${LIMITS.dataBytes / 1024} KiB each, as JSON.
- A page has at most ${LIMITS.listLength} notifications, and ends at 4 MiB.
- The operator limits the calls per second of an API key and the calls in flight (by default 1000 each in a gateway process): 429.`;

/** Pages show such a section when it is opened, so that the operations are not far below. */
const folded = (title: string, text: string) => `<details>
<summary>${title}</summary>

${text}

</details>`;

const DESCRIPTION = `Users and notifications of a collaboration backend, server to server.

Every operation is a POST with the JSON body \`{"data": {…}}\`. A success answers 200 with \`{"result": {…}}\`, a failure
\`{"error": {"message", "status", "details"?}}\`. Unknown fields are ignored, but deletions,
documents/set and notifications/update refuse one that may be a misspelt field. A field without a value is left out: \`null\` is refused.

## Credentials

Both headers are required: \`x-svc-api-key\`, which names the caller and owns all data that is stored with it, and
\`x-svc-auth-token\`, which is the secret. A system started for development has \`demo-key\` with \`demo-token\`.

${folded('Repeating a call', REPEATING)}

${folded('Limits', LIMITS_TEXT)}

${folded('Errors, in the order in which they are decided', ERROR_TABLE)}`;

const REQUEST_ID = { type: 'string', minLength: 1, maxLength: 128, pattern: '^[\\x20-\\x7e]+$' };

/** The OpenAPI document of the gateway. */
export function openApiDocument() {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Collaboration backend',
      version: '1.0.0',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The gateway that serves this document.' }],
    tags: [
      { name: 'Users', description: 'Users and their memberships.' },
      { name: 'Documents', description: 'Folder and access type of documents.' },
      { name: 'Notifications', description: 'Notifications and their recipients.' },
    ],
    security: [{ ApiKey: [], AuthToken: [] }],
    paths: Object.fromEntries(HTTP_MESSAGES.map((message) => [message.http.path, pathItemOf(message)])),
    components: {
      securitySchemes: {
        ApiKey: { type: 'apiKey', in: 'header', name: 'x-svc-api-key', description: 'The API key of the caller.' },
        AuthToken: { type: 'apiKey', in: 'header', name: 'x-svc-auth-token', description: 'A token of that API key: a secret.' },
      },
      parameters: {
        IdempotencyKey: {
          name: 'Idempotency-Key',
          in: 'header',
          description:
            'Makes the call repeatable: for at least 24 hours, a repetition with the same key gets the first answer again.',
          schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
        },
        RequestId: {
          name: 'x-request-id',
          in: 'header',
          description: 'Id of the call in answers and logs, 1-128 printable ASCII characters. Other values are replaced.',
          schema: REQUEST_ID,
        },
      },
      headers: {
        RequestId: { description: 'That of the request, or a new one.', required: true, schema: REQUEST_ID },
        RetryAfter: { description: 'Seconds to wait.', required: true, schema: { type: 'integer', minimum: 1 } },
      },
      schemas: titled(
        withSharedEnums({
          ...envelopes(),
          ...schemasOf(HTTP_MESSAGES.flatMap(({ request, result }) => [request, result])),
          ...FAILURE_SCHEMAS,
        }),
      ),
    },
  };
}
