import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MOST_UNPAID } from '../src/server/small-pieces';
import { RunningGateway } from './running-gateway';
import { BODY } from './sent-calls';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const CREDENTIALS = 'x-svc-api-key: demo-key\r\nx-svc-auth-token: demo-token\r\n';
const POST = `POST /v1/users/add HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
const LENGTH = `content-length: ${BODY.length}\r\n\r\n`;
const CHUNKED = `transfer-encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(2 * MOST_UNPAID)}`;
const REST = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

describe('an idle connection', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());

  it.each([
    ['a health check', 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n', '', 200],
    ['a call', `${POST}${CREDENTIALS}${LENGTH}${BODY}`, '', 200],
    ['a call in small pieces', `${POST}${CREDENTIALS}${CHUNKED}${REST}`, '', 200],
    ['a call without credentials, whose body comes after the answer', `${POST}${LENGTH}`, BODY, 401],
    ['the same in small pieces', `${POST}${CHUNKED}`, REST, 401],
  ])('keeps nothing of its last request: %s', async (_, bytes, rest, status) => {
    const socket = await gateway.connect();
    let request: WeakRef<IncomingMessage> | undefined;
    let closed: Promise<unknown> | undefined;
    gateway.app.getHttpServer().once('request', (one: IncomingMessage) => {
      request = new WeakRef(one);
      closed = once(one, 'close');
    });
    socket.write(bytes);
    const [answer] = (await once(socket.setEncoding('utf8'), 'data')) as [string];
    expect(answer).toContain(`HTTP/1.1 ${status} `);
    socket.write(rest);
    await closed;
    // The end of a request holds it for some iterations.
    for (let time = 0; time < 100 && request?.deref(); time++) {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
    }
    expect([request === undefined, request?.deref() === undefined]).toEqual([false, true]);
    socket.destroy();
  });
});
