import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { Backoff } from '@app/amqp/connection/backoff';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { parseManagementUrl } from '@app/rabbitmq/management-url';
import { tlsOptions, tlsProblem, type TlsFiles } from '@app/runtime/settings/tls-files';

const ANSWER_MS = 10_000;
const IDLE_TIMEOUT_MS = 5000;
const NOT_FOUND = 404;
const UNAUTHORIZED = 401;
const UNAUTHORIZED_REASON = ': a wrong login, or one without the tag administrator';
/** Longest answer: other services may make any number of some objects, and an answer is in memory as a whole. */
const MOST_MIB = 32;

/** The API has refused a request. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    request: string,
  ) {
    super(`the management API answered ${status} to ${request}${status === UNAUTHORIZED ? UNAUTHORIZED_REASON : ''}`);
  }
}

/** The answer is longer than what is read. */
export class TooLong extends Error {}

interface Answer {
  status: number;
  body: string;
}

export interface ManagementOptions {
  /** Files for `https:`. */
  tlsFiles?: TlsFiles;
  /** Time of `performance.now()` until which it waits for a broker that is not up yet. Default: it does not wait. */
  waitUntil?: number;
  /** Called once when it begins to wait. */
  onWait?: (reason: string) => void;
  /** Longest wait for a whole answer, in milliseconds. Default 10,000. */
  answerMs?: number;
}

/** The broker's management API, with the full-rights account. */
export class ManagementApi {
  /** Virtual host of the broker's URL, encoded for a path. */
  readonly vhost: string;
  /** The nodes of the cluster. The first one is used until it cannot be reached. */
  private readonly bases: string[];
  private readonly authorization: string;
  private readonly backoff = new Backoff();
  /** Its own, because the global one shares connections between requests with different certificates. */
  private readonly agent = new Agent({ keepAlive: true, timeout: IDLE_TIMEOUT_MS });

  /**
   * @param managementUrl `http://host1:15672,host2:15672`. Without user and password it uses those of the broker's URL
   */
  constructor(
    managementUrl: string,
    amqpUrl: string,
    private readonly options: ManagementOptions = {},
  ) {
    const urls = parseManagementUrl(managementUrl);
    const [url] = urls;
    const admin = parseBrokerUrl(amqpUrl);
    const username = decodeURIComponent(url.username) || admin.username;
    const password = decodeURIComponent(url.password) || admin.password;
    this.vhost = admin.vhost;
    this.bases = urls.map((one) => {
      one.username = one.password = '';
      return `${one.href.replace(/\/$/, '')}/api/`;
    });
    this.authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }

  /** @throws Refused with the answered status, never with a password; TooLong above 32 MiB. The same holds for the other methods */
  async put(path: string, body: unknown): Promise<void> {
    await this.request('PUT', path, body);
  }

  async post(path: string, body: unknown): Promise<void> {
    await this.request('POST', path, body);
  }

  /** Deletes; a missing object is not an error. */
  async delete(path: string): Promise<void> {
    await this.request('DELETE', path, undefined, NOT_FOUND);
  }

  /** @returns undefined when it does not exist */
  async get<T>(path: string): Promise<T | undefined> {
    const { status, body } = await this.request('GET', path, undefined, NOT_FOUND);
    if (status === NOT_FOUND) return undefined;
    try {
      return JSON.parse(body) as T;
    } catch {
      throw new Error(`the management API answered no JSON to GET ${path}`);
    }
  }

  /** Gets a path that exists on each broker. @throws Error also when it does not exist: then the URL does not lead to the API */
  async existing<T>(path: string): Promise<T> {
    const found = await this.get<T>(path);
    if (found === undefined) throw new Refused(NOT_FOUND, `GET ${path}`);
    return found;
  }

  /** A list that is there on each broker, perhaps empty. */
  list<T>(path: string): Promise<T[]> {
    return this.existing<T[]>(path);
  }

  private async request(method: string, path: string, body?: unknown, expected?: number): Promise<Answer> {
    const answer = await this.send(method, path, body === undefined ? '' : JSON.stringify(body));
    if (Math.floor(answer.status / 100) !== 2 && answer.status !== expected)
      throw new Refused(answer.status, `${method} ${path}`);
    return answer;
  }

  private async send(method: string, path: string, body: string): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      const failures: string[] = [];
      let untrusted: string | undefined;
      for (const base of [...this.bases]) {
        try {
          return await this.exchange(base, method, path, body);
        } catch (error) {
          if (error instanceof TooLong) throw error;
          const { message, code } = error as NodeJS.ErrnoException;
          untrusted ??= tlsProblem(error);
          failures.push(`${new URL(base).host}: ${tlsProblem(error) ?? code ?? message}`);
          // The others come first from now on.
          this.bases.push(...this.bases.splice(this.bases.indexOf(base), 1));
        }
      }
      const reason = `the management API cannot be reached: ${failures.join('; ')}`;
      if (untrusted || performance.now() > (this.options.waitUntil ?? 0)) throw new Error(reason);
      if (attempt === 0) this.options.onWait?.(reason);
      await this.backoff.wait(AbortSignal.timeout(ANSWER_MS));
    }
  }

  /** Not by fetch(), because Node's own has no option for certificates. */
  private async exchange(base: string, method: string, path: string, body: string): Promise<Answer> {
    const headers = {
      authorization: this.authorization,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const { tlsFiles = {}, answerMs = ANSWER_MS } = this.options;
    const signal = AbortSignal.timeout(answerMs);
    const options = { method, headers, signal };
    const tls = () => ({ agent: this.agent, ...tlsOptions(tlsFiles, () => undefined) });
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const request = base.startsWith('https:')
          ? httpsRequest(base + path, { ...options, ...tls() }, resolve)
          : httpRequest(base + path, options, resolve);
        request.on('error', reject).end(body);
      });
      return { status: response.statusCode ?? 0, body: await textOf(response, `${method} ${path}`) };
    } catch (error) {
      throw signal.aborted ? new Error(`no answer in ${answerMs / 1000} s`, { cause: error }) : error;
    }
  }
}

/** @throws TooLong, and destroys the response */
async function textOf(response: IncomingMessage, request: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_MIB * 1024 * 1024) throw new TooLong(`the management API answers more than ${MOST_MIB} MiB to ${request}`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
