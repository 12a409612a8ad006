// A bell in a web page. The page talks to this server, which knows the signed-in user and keeps the token. Needs Node alone.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { GATEWAY_URL = 'http://localhost:3000', API_KEY = 'demo-key', AUTH_TOKEN = 'demo-token', PORT = '8080' } = process.env;
const ORGANIZATION = 'acme';
const PAGE_SIZE = 10;
const MOST_BYTES = 64 * 1024;
/** A call marks at most 1000 notifications that were stored in the last seconds. */
const MOST_REPETITIONS = 10;

const FILES = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/bell.js': ['bell.js', 'text/javascript; charset=utf-8'],
  '/bell.css': ['bell.css', 'text/css; charset=utf-8'],
};
/** Content of notifications comes from many programs: no script but ours runs, whatever they contain. */
const HEADERS = { 'content-security-policy': "default-src 'self'; frame-ancestors 'none'", 'cache-control': 'no-store' };

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Calls the gateway. Organization and user come from this server, never from the page. */
async function call(operation, data) {
  const response = await fetch(`${GATEWAY_URL}/v1/notifications/${operation}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-svc-api-key': API_KEY, 'x-svc-auth-token': AUTH_TOKEN },
    body: JSON.stringify({ data: { organizationId: ORGANIZATION, ...data } }),
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined);
  // A proxy that answers in place of the gateway has no JSON.
  const answer = await response?.json().catch(() => undefined);
  if (!answer) throw new Refused(503, 'The notifications are not there for the moment.');
  const { result, error } = answer;
  if (error) throw new Refused(response.status, error.message);
  return result;
}

const ROUTES = {
  'GET /api/count': (userId) => call('inbox', { userId, pageSize: 0 }),
  'GET /api/inbox': (userId, { pageToken }) => call('inbox', { userId, pageSize: PAGE_SIZE, ...(pageToken && { pageToken }) }),
  'POST /api/mark': (userId, { id, read }) =>
    call('update', { notifications: [{ id, [read ? 'readByUserIds' : 'unreadByUserIds']: [userId] }] }),
  'POST /api/mark-all': async (userId, { upTo }) => {
    // The answer to a time in the future never reaches it. It may be one when another server became the database, with a clock that is behind.
    const { asOf } = await call('inbox', { userId, pageSize: 0 });
    const wanted = Math.min(upTo, asOf);
    for (let times = 0; times < MOST_REPETITIONS; times++) {
      const { readUpTo } = await call('update', { userId, readUpTo: wanted });
      if (readUpTo >= wanted) return {};
    }
    throw new Refused(503, 'There are too many new notifications. Try again.');
  },
};

/** In place of your session. SameSite keeps other pages from sending the cookie. */
function signedInUser(request) {
  const user = /(?:^|; )user=([^;]+)/.exec(request.headers.cookie ?? '')?.[1];
  if (!user) throw new Refused(401, 'Sign in first: /sign-in?as=grace');
  try {
    return decodeURIComponent(user);
  } catch {
    throw new Refused(400, 'The cookie is broken: sign in again.');
  }
}

async function bodyOf(request) {
  if (request.headers['content-type'] !== 'application/json') throw new Refused(415, 'The body must be JSON.');
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MOST_BYTES) throw new Refused(413, 'The body is too large.');
  }
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refused(400, 'The body is not JSON.');
  }
  if (typeof body !== 'object' || body === null) throw new Refused(400, 'The body must be an object.');
  return body;
}

async function answer(request, response) {
  if (!URL.canParse(request.url, 'http://localhost')) throw new Refused(400, 'The path is not valid.');
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const file = request.method === 'GET' && FILES[pathname];
  if (file) {
    const content = readFileSync(new URL(file[0], import.meta.url));
    return response.writeHead(200, { ...HEADERS, 'content-type': file[1] }).end(content);
  }
  if (request.method === 'GET' && pathname === '/sign-in') {
    const cookie = `user=${encodeURIComponent(searchParams.get('as') ?? '')}; Path=/; HttpOnly; SameSite=Strict`;
    return response.writeHead(303, { ...HEADERS, location: '/', 'set-cookie': cookie }).end();
  }
  const route = ROUTES[`${request.method} ${pathname}`];
  if (!route) throw new Refused(404, 'There is no such page.');
  const userId = signedInUser(request);
  const input = request.method === 'GET' ? Object.fromEntries(searchParams) : await bodyOf(request);
  const result = await route(userId, input);
  return response.writeHead(200, { ...HEADERS, 'content-type': 'application/json' }).end(JSON.stringify(result));
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    const { status = 500, message } = error;
    if (status === 500) console.error(error);
    const text = JSON.stringify({ error: status === 500 ? 'This did not work.' : message });
    response.writeHead(status, { ...HEADERS, 'content-type': 'application/json', connection: 'close' }).end(text);
  });
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Sign in at http://localhost:${server.address().port}/sign-in?as=grace`),
);
