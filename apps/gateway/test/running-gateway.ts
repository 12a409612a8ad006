import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { pino } from 'pino';
import { register } from 'prom-client';
import { NestLogger } from '@app/runtime/logger';
import { Readiness } from '@app/runtime/readiness';
import { metricValue } from '@app/testing/metric-value';
import { Authenticator } from '../src/admission/authenticator';
import { createGateway, type GatewayParts } from '../src/create-gateway';
import { listen } from '../src/server/listen';
import { StubRabbit } from './stub-rabbit';

export const CREDENTIALS = { 'x-svc-api-key': 'demo-key', 'x-svc-auth-token': 'demo-token' };

export interface Received {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  json: () => { result?: unknown; error?: { message: string; status: string; details?: unknown } };
}

interface Sent {
  method?: string;
  path?: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Buffer;
}

type Line = Record<string, unknown>;

/** Collects the log lines of the gateway. */
export class Log extends Writable {
  readonly lines: Line[] = [];

  constructor() {
    super({
      write: (chunk: Buffer, _encoding, done) => {
        this.lines.push(JSON.parse(chunk.toString()) as Line);
        this.emit('line');
        done();
      },
    });
  }

  /** Waits for the first line with these values. Tests use it as the signal of an internal event. */
  async line(wanted: Line): Promise<Line> {
    for (;;) {
      const found = this.lines.find((line) => Object.entries(wanted).every(([key, value]) => line[key] === value));
      if (found) return found;
      await once(this, 'line');
    }
  }
}

/** A gateway on a free port, and its clients. */
export class RunningGateway {
  private constructor(
    readonly app: NestFastifyApplication,
    /** Closes it, when its running calls are answered. */
    readonly stop: () => Promise<void>,
    readonly port: number,
    readonly rabbit: StubRabbit,
    readonly readiness: Readiness,
    readonly log: Log,
  ) {}

  static async start({
    config,
    limits,
    port = 0,
  }: { config?: Partial<GatewayParts['config']>; limits?: GatewayParts['limits']; port?: number } = {}) {
    const rabbit = new StubRabbit();
    const readiness = new Readiness();
    const log = new Log();
    const app = await createGateway({
      config: { requestTimeoutMs: 5000, rateLimitPerSecond: 0, maxInFlight: 1000, keepAliveTimeoutMs: 125_000, ...config },
      rabbit,
      authenticator: new Authenticator(rabbit, 600_000),
      readiness,
      logger: new NestLogger(pino({ level: 'debug' }, log)),
      limits,
    });
    const stop = await listen(app, { port, host: '127.0.0.1' });
    const address = app.getHttpServer().address() as AddressInfo;
    return new RunningGateway(app, stop, address.port, rabbit, readiness, log);
  }

  /** A POST with credentials and a JSON body; `headers` may override them. */
  post(path: string, body: unknown, headers: OutgoingHttpHeaders = {}): Promise<Received> {
    const json = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    return this.send({ path, body: json, headers: { ...CREDENTIALS, 'content-type': 'application/json', ...headers } });
  }

  async send({ method = 'POST', path = '/v1/users/add', headers = {}, body }: Sent): Promise<Received> {
    const length = body === undefined || headers['transfer-encoding'] ? {} : { 'content-length': Buffer.byteLength(body) };
    const request = httpRequest({
      port: this.port,
      host: '127.0.0.1',
      method,
      path,
      headers: { ...length, ...headers },
      agent: false,
    });
    const responded = once(request, 'response') as Promise<[IncomingMessage]>;
    request.end(body);
    const [response] = await responded;
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    return received(response.statusCode ?? 0, response.headers, text);
  }

  async connect(): Promise<Socket> {
    const socket = connect(this.port, '127.0.0.1');
    // Some tests make the server close early.
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  }

  /** Sends bytes, and reads until the server closes. */
  async raw(...parts: (string | Buffer)[]): Promise<Received[]> {
    const socket = await this.connect();
    for (const part of parts) socket.write(part);
    return responsesIn(await textOf(socket));
  }

  /** All gateways of a process share it, see {@link metricValue}. */
  metric(name: string, labels?: Record<string, string>): Promise<number> {
    return metricValue(register, name, labels);
  }
}

/** All text that arrives until the other side closes. */
export async function textOf(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  await once(socket, 'close');
  return text;
}

/** Responses with a content-length, one after the other. */
export function responsesIn(text: string): Received[] {
  const responses: Received[] = [];
  while (text) {
    const end = text.indexOf('\r\n\r\n');
    const [statusLine, ...lines] = text.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
    );
    const length = Number(headers['content-length']);
    if (Number.isNaN(length)) throw new Error(`A response without content-length: ${text}`);
    responses.push(received(Number(statusLine.split(' ')[1]), headers, text.slice(end + 4, end + 4 + length)));
    text = text.slice(end + 4 + length);
  }
  return responses;
}

const received = (status: number, headers: IncomingHttpHeaders, text: string): Received => ({
  status,
  headers,
  text,
  json: () => JSON.parse(text) as ReturnType<Received['json']>,
});
