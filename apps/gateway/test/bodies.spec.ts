import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { eventually } from '@app/testing/eventually';
import { responsesIn, RunningGateway } from './running-gateway';
import { head } from './sent-calls';

const OPERATIONS = HTTP_MESSAGES.map(({ http }) => http.path);

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const withUserId = (json: string) => `{"data":{"organizationId":"acme","users":[{"userId":${json}}]}}`;
/** A valid body of exactly this size. */
const ofSize = (bytes: number) => {
  const body = withUserId('"ada"').replace('{"data"', '{"padding":"","data"');
  return body.replace('"padding":""', `"padding":"${'x'.repeat(bytes - body.length)}"`);
};

describe('a body', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());
  beforeEach(() => (gateway.rabbit.calls.length = 0));

  it.each<[string, string | Buffer]>([
    ['nothing', ''],
    ['half of an object', '{"data":'],
    ['text after the object', `${withUserId('"a"')}x`],
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"data"'],
    ['no data', '{}'],
    ['data of null', '{"data":null}'],
    ['data of an array', '{"data":[]}'],
    ['a byte order mark', Buffer.from(`\ufeff${withUserId('"a"')}`)],
    ['invalid UTF-8', Buffer.from(withUserId('"\u00ff"'), 'latin1')],
    ['UTF-16', Buffer.from(withUserId('"a"'), 'utf16le')],
    ['NUL in a string', withUserId('"\\u0000"')],
    ['NUL in an unknown field', '{"other":"\\u0000","data":{"organizationId":"a","users":[{"userId":"a"}]}}'],
    ['half of a surrogate pair', withUserId('"\\ud83d"')],
    ['half of a surrogate pair in a key', '{"\\udc00":1,"data":{}}'],
    ['a number beyond all bounds', '{"data":{"organizationId":1e400}}'],
    ['a key __proto__', '{"data":{"__proto__":{"organizationId":"a"}}}'],
    ['a key constructor', '{"data":{"constructor":{"prototype":{"x":1}}}}'],
    ['a depth of 33', `{"data":{},"deep":${nested(32)}}`],
    ['a depth of 100,000', nested(100_000)],
  ])('of %s is answered 400 by every operation, and nothing is called', async (_, body) => {
    for (const path of OPERATIONS) {
      const { status, json } = await gateway.post(path, body);
      expect([path, status, Object.keys(json()), json().error?.status]).toEqual([path, 400, ['error'], 'INVALID_ARGUMENT']);
    }
    expect(gateway.rabbit.calls).toEqual([]);
  });

  it.each([
    ['257 bytes', `"${'x'.repeat(257)}"`],
    ['a number', '1'],
  ])('with a userId of %s is answered 400', async (_, json) => {
    const answer = await gateway.post('/v1/users/add', withUserId(json));
    expect([answer.status, answer.json().error?.status]).toEqual([400, 'INVALID_ARGUMENT']);
    expect(gateway.rabbit.calls).toEqual([]);
  });

  it('is refused with the path of its first problem, and all problems in the details', async () => {
    const { json } = await gateway.post('/v1/users/add', { data: { organizationId: '', users: [{ userId: 1 }] } });
    const message = 'data.organizationId must not be blank';
    expect(json().error).toEqual({
      message,
      status: 'INVALID_ARGUMENT',
      details: [
        { field: 'data.organizationId', message },
        { field: 'data.users[0].userId', message: 'data.users[0].userId must be a string' },
      ],
    });
  });

  it.each([
    ['"__proto__"', '__proto__'],
    ['"constructor"', 'constructor'],
    ['"a\\u00e9\\ud83d\\ude00"', 'aé😀'],
  ])('may hold the userId %s', async (json, userId) => {
    expect((await gateway.post('/v1/users/add', withUserId(json))).status).toBe(200);
    expect(gateway.rabbit.calls[0].body).toEqual({ organizationId: 'acme', users: [{ userId }] });
  });

  it('uses the last of duplicate keys', async () => {
    await gateway.post('/v1/users/add', '{"data":1,"data":{"organizationId":"a","organizationId":"b","users":[{"userId":"u"}]}}');
    expect(gateway.rabbit.calls[0].body).toMatchObject({ organizationId: 'b' });
  });

  it('of 1 MiB is read, and one byte more is answered 413', async () => {
    expect((await gateway.post('/v1/users/add', ofSize(1024 * 1024))).status).toBe(200);
    const { status, json } = await gateway.post('/v1/users/add', ofSize(1024 * 1024 + 1));
    expect([status, json().error?.status]).toEqual([413, 'INVALID_ARGUMENT']);
  });

  it('of unknown length is also answered 413 above 1 MiB, and its client can read the answer', async () => {
    const body = ofSize(3 * 1024 * 1024);
    const { status, json } = await gateway.post('/v1/users/add', body, { 'transfer-encoding': 'chunked' });
    expect([status, json().error?.status]).toEqual([413, 'INVALID_ARGUMENT']);
  });

  it('that is not JSON leaves its connection open', async () => {
    const { status, headers } = await gateway.post('/v1/users/add', '{', { connection: 'keep-alive' });
    expect([status, headers.connection]).not.toContain('close');
    expect(status).toBe(400);
  });

  describe('that is refused before it has arrived, on a connection that ends', () => {
    const MEBIBYTE = 1024 * 1024;
    let socket: Socket;
    afterEach(() => {
      socket.destroy();
      gateway.readiness.draining = false;
    });
    /** Resolves when the client has read its refusal, and has not sent its body. */
    const refusal = async ({ port }: RunningGateway, headers: string) => {
      socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      socket.write(head(8 * MEBIBYTE, headers));
      await once(socket, 'end');
      expect(responsesIn(text).map((one) => [one.status, one.headers.connection])).toEqual([[413, 'close']]);
    };

    it.each([
      ['by its client', 'connection: close\r\n', false],
      ['by the drain', '', true],
    ])('%s, is read to its end, and the client is not reset', async (_, headers, draining) => {
      gateway.readiness.draining = draining;
      await refusal(gateway, headers);
      socket.end(Buffer.alloc(8 * MEBIBYTE, ' '));
      await once(socket, 'close');
    });

    it('is waited for within the time of a request', async () => {
      const limits = { requestTimeoutMs: 500, headersTimeoutMs: 500, checkEveryMs: 20 };
      const impatient = await RunningGateway.start({ limits });
      const open = await impatient.metric('gateway_connections');
      await refusal(impatient, 'connection: close\r\n');
      await eventually(async () => (await impatient.metric('gateway_connections')) === open);
      await impatient.stop();
    });
  });
});
