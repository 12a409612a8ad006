// The limits of libs/contracts, as far as JSON Schema can say them. Fastify compiles them with ajv.
const identifier = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  pattern: '^(?=[\\s\\S]*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]*$',
};
const name = { type: 'string', maxLength: 320 };
const text = { type: 'string', maxLength: 10_000 };
/** @param {object} properties @param {string[]} required */
const object = (properties, required) => ({ type: 'object', properties, required, additionalProperties: false });
const free = { type: 'object', additionalProperties: true };
const user = object({ userId: identifier, name, email: name }, ['userId']);
/** @param {object} data */
const body = (data) => object({ data }, ['data']);

export const ADD_BODY = body(
  object(
    {
      organizationId: identifier,
      documentId: identifier,
      locationId: identifier,
      actionUser: user,
      displayHeadlineMessageTemplate: { ...text, minLength: 1 },
      displayHeadlineMessageTemplateData: {
        type: 'object',
        properties: { actionUser: user, recipientUser: { ...user, type: ['object', 'string'] } },
        additionalProperties: { type: 'string' },
      },
      displayBodyMessage: text,
      notifyUsers: { type: 'array', items: user, maxItems: 1000 },
      notifyAll: { type: 'boolean' },
      notificationSourceData: free,
    },
    ['organizationId', 'documentId', 'actionUser', 'displayHeadlineMessageTemplate'],
  ),
);

export const GET_BODY = body(
  object({ organizationId: identifier, userId: identifier, pageSize: { type: 'integer', minimum: 1, maximum: 1000 } }, [
    'organizationId',
    'userId',
  ]),
);
