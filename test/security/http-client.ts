import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

/** Longer than any timeout of the gateway, in milliseconds. */
const GIVE_UP_MS = 20_000;

export interface Response {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export interface Request {
  method: string;
  path: string;
  /** Names and values in turn. */
  headers: readonly string[];
  body: Buffer;
  /** Sends the body in chunks, without its length. */
  chunked: boolean;
}

/** Sends requests that other clients refuse to send, over persistent connections. */
export class HttpClient {
  private readonly agent: Agent;
  private readonly hostname: string;
  private readonly port: number;

  constructor(url: string, connections: number) {
    this.agent = new Agent({ keepAlive: true, maxSockets: connections });
    const { port } = new URL(url);
    this.hostname = '127.0.0.1';
    this.port = Number(port);
  }

  send({ method, path, headers, body, chunked }: Request): Promise<Response> {
    return new Promise((resolve, reject) => {
      const length = chunked ? ['transfer-encoding', 'chunked'] : ['content-length', String(body.length)];
      const call = request(
        {
          agent: this.agent,
          hostname: this.hostname,
          port: this.port,
          method,
          path,
          headers: ['host', 'gateway', ...length, ...headers],
          timeout: GIVE_UP_MS,
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.on('error', reject);
          response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
        },
      );
      call.on('timeout', () => call.destroy(new Error(`No answer within ${GIVE_UP_MS} ms`)));
      call.on('error', reject);
      call.end(body);
    });
  }

  /** Sends bytes on a new connection, and reads until the server closes it. */
  sendBytes(bytes: Buffer): Promise<Response[]> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.port, this.hostname, () => socket.write(bytes));
      const chunks: Buffer[] = [];
      socket.setTimeout(GIVE_UP_MS, () => socket.destroy(new Error(`Not closed within ${GIVE_UP_MS} ms`)));
      socket.on('data', (chunk) => chunks.push(chunk));
      socket.on('error', reject);
      socket.on('close', () => {
        try {
          resolve(responsesIn(Buffer.concat(chunks)));
        } catch (error) {
          reject(new Error('The answer cannot be read', { cause: error }));
        }
      });
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

function responsesIn(bytes: Buffer): Response[] {
  const responses: Response[] = [];
  while (bytes.length > 0) {
    const end = bytes.indexOf('\r\n\r\n');
    const [statusLine, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
    const body = end + 4 + (status === 100 ? 0 : Number(headers['content-length']));
    if (end < 0 || !(body <= bytes.length)) throw new Error(`Not a response: ${bytes.toString('latin1')}`);
    if (status !== 100) responses.push({ status, headers, text: bytes.subarray(end + 4, body).toString() });
    bytes = bytes.subarray(body);
  }
  return responses;
}
