// The direct service: Fastify and pg in one process, no queue. The least cost of the same calls with this database.
import { createHash, randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import pg from 'pg';
import { ADD_BODY, GET_BODY } from './schemas.mjs';
import { ADD, FIND_KEY, GET } from './statements.mjs';

/** @typedef {{ userId: string }} User */

const KEPT_MS = 5000;
const ADDED = 'Notification added successfully.';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 });
const verdicts = new Map();

const server = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: true } } });

server.addHook('onRequest', async (request, reply) => {
  const { 'x-svc-api-key': key, 'x-svc-auth-token': token } = request.headers;
  if (!(await isValid(String(key ?? ''), String(token ?? ''))))
    return reply.code(401).send({ error: { status: 'UNAUTHENTICATED', message: 'Unknown key.' } });
});

server.post('/v1/notifications/add', { schema: { body: ADD_BODY } }, async (request) => {
  const { organizationId, documentId, locationId, notifyAll, ...content } = dataOf(request);
  const users = [...new Set((content.notifyUsers ?? []).map((/** @type {User} */ { userId }) => userId))];
  const all = notifyAll ?? users.length === 0;
  const apiKey = request.headers['x-svc-api-key'];
  const values = [randomUUID(), apiKey, organizationId, documentId, locationId ?? null, all, JSON.stringify(content), users];
  await pool.query({ ...ADD, values });
  return { result: { status: 'success', message: ADDED, data: { success: true, message: ADDED } } };
});

server.post('/v1/notifications/get', { schema: { body: GET_BODY } }, async (request) => {
  const { organizationId, userId, pageSize = 1000 } = dataOf(request);
  const apiKey = request.headers['x-svc-api-key'];
  const { rows } = await pool.query({ ...GET, values: [apiKey, organizationId, userId, pageSize] });
  const data = rows.map((row) => toItem(row, String(apiKey), organizationId));
  return { result: { status: 'success', message: 'Notification(s) retrieved successfully.', data } };
});

/** The body that its schema has let in. @param {import('fastify').FastifyRequest} request */
const dataOf = (request) => /** @type {{ data: any }} */ (request.body).data;

await server.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });

/** @param {string} key @param {string} token */
async function isValid(key, token) {
  if (!key || !token) return false;
  const id = `${key} ${token}`;
  const known = verdicts.get(id);
  if (known?.until > Date.now()) return known.valid;
  const hash = createHash('sha256').update(token).digest('hex');
  const { rowCount } = await pool.query({ ...FIND_KEY, values: [key, hash] });
  verdicts.set(id, { valid: (rowCount ?? 0) > 0, until: Date.now() + KEPT_MS });
  return (rowCount ?? 0) > 0;
}

/** @param {Record<string, any>} row @param {string} apiKey @param {string} organizationId */
function toItem({ id, timestamp, document_id: documentId, location_id: locationId, content }, apiKey, organizationId) {
  const { notifyUsers = [], ...shown } = content;
  const named = Object.fromEntries(notifyUsers.map((/** @type {User} */ { userId }) => [userId, true]));
  return {
    id,
    notificationSource: 'custom',
    notificationSourceData: {},
    displayBodyMessage: '',
    displayHeadlineMessageTemplateData: {},
    ...shown,
    metadata: { apiKey, documentId, organizationId, ...(locationId !== null && { locationId }) },
    notifyUsers: named,
    notifyUsersByUserId: named,
    timestamp: Number(timestamp),
  };
}
