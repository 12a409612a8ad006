import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { NestLogger } from '@app/runtime/logger';
import { createServer } from './create-server';
import { html } from './html/html';

const TOKEN = 'a token of the operator with more than 32 bytes';
const ORIGIN = { host: 'localhost:3001', origin: 'http://localhost:3001', 'content-type': 'application/x-www-form-urlencoded' };

let lines: string[];
let app: FastifyInstance;
let done: string[];

beforeEach(() => {
  lines = [];
  done = [];
  app = createServer(TOKEN, new NestLogger(pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })));
  app.get('/page', (request) => html`<form>${request.form()}</form>`.text);
  app.post('/act', (request) => {
    done.push(request.session.operator);
    return 'done';
  });
  app.post('/confirm', { config: { changesNothing: true } }, (request) => request.session.operator);
  app.get('/broken', () => {
    throw new Error('<b>internal</b>');
  });
});
afterEach(() => app.close());

const form = (values: Record<string, string>) => new URLSearchParams(values).toString();
const signIn = (token = TOKEN, name = 'Ada <Lovelace>', to = '') =>
  app.inject({ method: 'POST', url: '/sign-in', headers: ORIGIN, payload: form({ name, token, to }) });

async function signedIn(): Promise<{ cookie: string }> {
  const { headers } = await signIn();
  return { cookie: String(headers['set-cookie']).split(';')[0] };
}
async function formOf(cookie: string): Promise<string> {
  const { body } = await app.inject({ url: '/page', headers: { cookie } });
  return /value="([^"]+)"/.exec(body)?.[1] ?? '';
}
const act = (headers: Record<string, string>, values: Record<string, string> = {}) =>
  app.inject({ method: 'POST', url: '/act', headers: { ...ORIGIN, ...headers }, payload: form(values) });

it('shows nothing without a session, and a page with one', async () => {
  const refused = await app.inject({ url: '/page' });
  expect([refused.statusCode, refused.headers.location]).toEqual([303, '/sign-in?to=%2Fpage']);
  expect((await app.inject({ url: '/page', headers: await signedIn() })).statusCode).toBe(200);
  const byHeader = { authorization: `Bearer ${TOKEN}` };
  expect((await app.inject({ url: '/page', headers: byHeader })).statusCode).toBe(200);
  expect((await app.inject({ url: '/page', headers: { authorization: 'Bearer wrong' } })).statusCode).toBe(401);
});

it('keeps the cookie from scripts and other sites, and demands HTTPS outside of this machine', async () => {
  expect((await signIn()).headers['set-cookie']).toMatch(
    /^operator-session=[\w.-]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/,
  );
  const elsewhere = await app.inject({
    method: 'POST',
    url: '/sign-in',
    headers: { ...ORIGIN, host: 'ops.example', origin: 'https://ops.example' },
    payload: form({ name: 'Ada', token: TOKEN }),
  });
  expect(elsewhere.headers['set-cookie']).toMatch(/^__Host-operator-session=.*; SameSite=Strict; Secure$/);
});

it('leads to the wanted page after the sign-in, and never to another server', async () => {
  const wanted = '/letters/a.dead/letter?letter=x_-.sha256%3A1';
  const asked = await app.inject({ url: `/sign-in?to=${encodeURIComponent(wanted)}` });
  expect(asked.body).toContain(`name="to" value="${wanted}"`);
  expect((await signIn(TOKEN, 'Ada', wanted)).headers.location).toBe(wanted);
  for (const evil of ['//evil.example', '/\\evil.example', '/\t/evil.example', '/.//evil.example', 'https://evil.example', 'x'])
    expect((await signIn(TOKEN, 'Ada', evil)).headers.location).toBe('/');
});

it('keeps the name after a wrong token, and says at the field what is wrong', async () => {
  const { body } = await signIn('wrong', 'Ada "<b>');
  expect(body).toContain('value="Ada &quot;&lt;b&gt;"');
  const token = /<input[^>]*name="token"[^>]*>/.exec(body)?.[0];
  expect(token).toMatch(/autofocus aria-invalid="true" aria-describedby="problem"/);
  expect(body).toMatch(/id="problem"[^>]*>This is not the token/);
  expect(body).not.toContain('wrong"');
});

it('looks at five wrong tokens a minute, and then at no right one either', async () => {
  for (let right = 0; right < 10; right++) expect((await signIn()).statusCode).toBe(303);
  const tries = await Promise.all(Array.from({ length: 7 }, () => signIn('wrong')));
  expect(tries.map(({ statusCode }) => statusCode).sort()).toEqual([401, 401, 401, 401, 401, 429, 429]);
  const next = await signIn();
  expect(next.statusCode).toBe(429);
  expect(Number(next.headers['retry-after'])).toBeGreaterThan(50);
});

it('ends sessions with the token that began them, and believes no changed cookie', async () => {
  const { cookie } = await signedIn();
  const [name, value] = cookie.split('=');
  const [content, mac] = value.split('.');
  const forged = Buffer.from(Buffer.from(content, 'base64url').toString().replace('Ada', 'Eve')).toString('base64url');
  for (const changed of [`${name}=${forged}.${mac}`, `${name}=${content}.`, `${name}=x.y`])
    expect((await app.inject({ url: '/page', headers: { cookie: changed } })).statusCode).toBe(303);
  const other = createServer(`${TOKEN}!`, new NestLogger(pino({ level: 'silent' })));
  expect((await other.inject({ url: '/icon.svg' })).statusCode).toBe(200);
  expect((await other.inject({ url: '/page', headers: { cookie } })).statusCode).toBe(303);
});

it('executes a form of the session once, and no other', async () => {
  const { cookie } = await signedIn();
  const token = await formOf(cookie);
  expect((await act({ cookie })).statusCode).toBe(403);
  expect((await act({ cookie }, { form: await formOf((await signedIn()).cookie) })).statusCode).toBe(403);
  expect((await act({ cookie, origin: 'http://evil.example' }, { form: token })).statusCode).toBe(403);
  expect((await act({ cookie, origin: 'null' }, { form: token })).statusCode).toBe(403);
  expect((await act({ cookie, 'sec-fetch-site': 'same-site' }, { form: token })).statusCode).toBe(403);
  expect(done).toEqual([]);
  expect((await act({ cookie }, { form: token })).statusCode).toBe(200);
  expect((await act({ cookie }, { form: token })).statusCode).toBe(409);
  expect(done).toEqual(['Ada <Lovelace>']);
  expect((await act({ authorization: `Bearer ${TOKEN}`, 'x-operator': 'script' })).statusCode).toBe(200);
});

it('confirms as often as it is asked, also after "Back", and for no other site', async () => {
  const { cookie } = await signedIn();
  const confirm = (headers: Record<string, string>) =>
    app.inject({ method: 'POST', url: '/confirm', headers: { ...ORIGIN, ...headers }, payload: '' });
  for (let time = 0; time < 2; time++) expect((await confirm({ cookie })).statusCode).toBe(200);
  expect((await confirm({ cookie, origin: 'http://evil.example' })).statusCode).toBe(403);
  expect((await confirm({})).statusCode).toBe(401);
});

it('keeps the pages within reach after an error, for those who are signed in', async () => {
  const cookies = await signedIn();
  for (const url of ['/nothing', '/broken']) {
    const { body } = await app.inject({ url, headers: cookies });
    expect(body).toMatch(/<h1>Not shown<\/h1>/);
    for (const part of ['href="/letters"', 'action="/sign-out"', 'Ada &lt;Lovelace&gt;']) expect(body).toContain(part);
  }
  const { body } = await act({});
  expect(body).toMatch(/<h1>Not done<\/h1>/);
  expect(body).toContain('href="/sign-in"');
  expect(body).not.toContain('action="/sign-out"');
});

it('takes the password of a proxy in front for no token, and its requests for no program', async () => {
  const authorization = `Basic ${Buffer.from('ada:password').toString('base64')}`;
  const { cookie } = await signedIn();
  for (let request = 0; request < 6; request++)
    expect((await app.inject({ url: '/page', headers: { cookie, authorization } })).statusCode).toBe(200);
  expect((await app.inject({ url: '/page', headers: { authorization } })).headers.location).toBe('/sign-in?to=%2Fpage');
  expect((await act({ cookie, authorization })).statusCode).toBe(403);
  expect((await act({ cookie, authorization, origin: 'http://evil.example' }, { form: await formOf(cookie) })).statusCode).toBe(
    403,
  );
  expect((await act({ cookie, authorization }, { form: await formOf(cookie) })).statusCode).toBe(200);
});

it('ends a session for every copy of its cookie', async () => {
  const { cookie } = await signedIn();
  const headers = { ...ORIGIN, cookie };
  const payload = form({ form: await formOf(cookie) });
  const { headers: answer } = await app.inject({ method: 'POST', url: '/sign-out', headers, payload });
  expect(answer['set-cookie']).toMatch(/^operator-session=; Max-Age=0;/);
  expect((await app.inject({ url: '/page', headers: { cookie } })).statusCode).toBe(303);
});

it('ends a session after twelve hours, also when a browser keeps its cookie', async () => {
  const headers = await signedIn();
  const statusIn = async (hours: number) => {
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + hours * 3_600_000);
    const { statusCode } = await app.inject({ url: '/page', headers });
    clock.mockRestore();
    return statusCode;
  };
  expect([await statusIn(11.9), await statusIn(12)]).toEqual([200, 303]);
});

it('has no secret in a log, and no markup or internal in an error', async () => {
  const { cookie } = await signedIn();
  await signIn('wrong token of somebody');
  const broken = await app.inject({ url: '/broken', headers: { cookie } });
  expect(broken.statusCode).toBe(500);
  expect(broken.body).not.toContain('internal');
  expect(lines.join('')).toContain('Ada <Lovelace>');
  for (const secret of [TOKEN, 'wrong token of somebody', cookie.split('=')[1]]) expect(lines.join('')).not.toContain(secret);
});

it.each(['/sign-in', '/page.css', '/nothing', '/%ff'])('lets browsers neither cache nor frame nor script %s', async (url) => {
  const { headers } = await app.inject({ url, headers: { authorization: `Bearer ${TOKEN}` } });
  expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';.*frame-ancestors 'none'$/);
  expect(headers['content-security-policy']).not.toContain('unsafe');
  expect(headers['cache-control']).toBe('no-store');
  expect(headers['x-frame-options']).toBe('DENY');
});
