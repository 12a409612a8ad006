import { eventually } from '@app/testing/eventually';
import { CREDENTIALS, RunningGateway, responsesIn, textOf } from './running-gateway';
import { BODY } from './sent-calls';

const chunked = (body: string) => `${body.replace(/[^]/g, '1\r\n$&\r\n')}0\r\n\r\n`;
const head = (headers: object, path = '/v1/users/add') =>
  [
    `POST ${path} HTTP/1.1`,
    'host: x',
    'content-type: application/json',
    'transfer-encoding: chunked',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n');

describe('a body in chunks of one byte', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());
  beforeEach(() => (gateway.rabbit.calls.length = 0));

  const pauses = () => gateway.metric('gateway_body_pauses_total');
  /** Sends calls on one connection, and the last one closes it. */
  const send = (count: number, headers: object, body: string) => {
    const call = head(headers) + chunked(body);
    const last = head({ ...headers, connection: 'close' }) + chunked(BODY);
    return gateway.raw(...Array.from({ length: count }, () => call), last);
  };

  it('is read, and so is the next one on its connection', async () => {
    const responses = await send(5, CREDENTIALS, BODY.padEnd(3000));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(gateway.rabbit.calls).toHaveLength(6);
    expect(gateway.rabbit.calls[0].body).toEqual({ organizationId: 'acme', users: [{ userId: 'ada' }] });
  });

  it('is read in turns when it is large', async () => {
    const before = await pauses();
    const [{ status }] = await send(1, CREDENTIALS, BODY.padEnd(100_000));
    expect(status).toBe(200);
    expect((await pauses()) - before).toBeGreaterThan(5);
  });

  it('is dropped in turns after a refusal, and its client can send the next call', async () => {
    const before = await pauses();
    const responses = await send(1, {}, BODY.padEnd(100_000));
    expect(responses.map(({ status }) => status)).toEqual([401, 401]);
    expect((await pauses()) - before).toBeGreaterThan(5);
  });

  it('is dropped in turns when it is too large', async () => {
    const before = await pauses();
    const socket = await gateway.connect();
    const text = textOf(socket);
    socket.write(head(CREDENTIALS) + '8000\r\n'.concat(' '.repeat(0x8000), '\r\n').repeat(33));
    await eventually(() => gateway.log.lines.some(({ status }) => status === 413));
    socket.write(chunked(' '.repeat(50_000)) + head({ connection: 'close' }, '/nowhere') + chunked('x'));
    expect(responsesIn(await text).map(({ status }) => status)).toEqual([413, 404]);
    expect((await pauses()) - before).toBeGreaterThan(2);
  });
});
