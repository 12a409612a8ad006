const ORGANIZATION = 'acme';
const DOCUMENT = 'plan';
const ADA = { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' };
const GRACE = { userId: 'grace', name: 'Grace Hopper', email: 'grace@example.com' };

/**
 * README.md, "Try it", has the same ones.
 * @type {[string, object][]}
 */
const CALLS = [
  ['users/add', { organizationId: ORGANIZATION, users: [ADA, GRACE] }],
  [
    'notifications/add',
    {
      organizationId: ORGANIZATION,
      documentId: DOCUMENT,
      actionUser: ADA,
      displayHeadlineMessageTemplate: '{actionUser} mentioned {recipientUser}',
      displayHeadlineMessageTemplateData: { actionUser: ADA, recipientUser: GRACE },
      displayBodyMessage: 'Please have a look.',
      notifyUsers: [GRACE],
    },
  ],
  ['notifications/get', { organizationId: ORGANIZATION, documentId: DOCUMENT, userId: GRACE.userId }],
];

/**
 * The text for a person who has just started the system.
 * @param {string} baseUrl
 * @param {{ key: string, token: string }} credentials
 * @param {object} more
 * @param {boolean} more.foreignDatabase whether the credentials went into a database that outlives this checkout
 * @param {{ url: string, token: string }} [more.page] of the operator
 */
export function welcome(baseUrl, { key, token }, { foreignDatabase, page }) {
  const headers = ['content-type: application/json', `x-svc-api-key: ${key}`, `x-svc-auth-token: ${token}`];
  /** @param {[string, object]} options */
  const curl = ([path, data]) =>
    ['curl -s', `${baseUrl}/v1/${path}`, ...headers.map((header) => `-H '${header}'`), `-d '${JSON.stringify({ data })}'`].join(
      ' ',
    );
  return `
API            ${baseUrl}
Documentation  ${baseUrl}/docs, of the messages ${baseUrl}/docs/messages
API key        ${key}
Token          ${token}${page ? `\nOperator       ${page.url}, with the token ${page.token}` : ''}

${CALLS.map(curl).join('\n\n')}
${foreignDatabase ? `\nThe demo key is in the database of DATABASE_URL now. When you are done: npm run keys -- revoke ${key}\n` : ''}
Ctrl-C stops everything. Logs are in .local/logs, settings in .local/stack.env.
`;
}
