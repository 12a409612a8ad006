import { Backoff } from '@app/amqp/backoff';
import { parseBrokerUrl } from '@app/amqp/broker-url';
import { parseManagementUrl } from '@app/rabbitmq/management-url';

const REQUEST_TIMEOUT_MS = 10_000;
const NOT_FOUND = 404;

/** The broker's management API, with the full-rights account. */
export class ManagementApi {
  /** Virtual host of the broker's URL, encoded for a path. */
  readonly vhost: string;
  /** The nodes of the cluster. The first one is used until it cannot be reached. */
  private readonly bases: string[];
  private readonly authorization: string;
  private readonly backoff = new Backoff();

  /**
   * @param managementUrl `http://host1:15672,host2:15672`. Without user and password it uses those of the broker's URL
   * @param waitUntil time of `performance.now()` until which it waits for a broker that is not up yet
   */
  constructor(
    managementUrl: string,
    amqpUrl: string,
    private readonly waitUntil = 0,
  ) {
    const urls = parseManagementUrl(managementUrl);
    const [url] = urls;
    const admin = parseBrokerUrl(amqpUrl);
    const username = decodeURIComponent(url.username) || admin.username;
    const password = decodeURIComponent(url.password) || admin.password;
    this.vhost = admin.vhost;
    this.bases = urls.map((one) => {
      // fetch() refuses a URL with credentials.
      one.username = one.password = '';
      return `${one.href.replace(/\/$/, '')}/api/`;
    });
    this.authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }

  /** @throws Error with the answered status, never with a password. The same holds for the other methods */
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
    const response = await this.request('GET', path, undefined, NOT_FOUND);
    return response.status === NOT_FOUND ? undefined : ((await response.json()) as T);
  }

  private async request(method: string, path: string, body?: unknown, expected?: number): Promise<Response> {
    const response = await this.send(path, {
      method,
      headers: { authorization: this.authorization, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok && response.status !== expected) {
      throw new Error(`the management API answered ${response.status} to ${method} ${path}`);
    }
    return response;
  }

  private async send(path: string, request: RequestInit): Promise<Response> {
    for (;;) {
      const failures: string[] = [];
      for (const base of [...this.bases]) {
        try {
          return await fetch(base + path, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
        } catch (error) {
          const { message, cause } = error as Error;
          failures.push(`${new URL(base).host}: ${((cause ?? {}) as NodeJS.ErrnoException).code ?? message}`);
          // The others come first from now on.
          this.bases.push(...this.bases.splice(this.bases.indexOf(base), 1));
        }
      }
      if (performance.now() > this.waitUntil) throw new Error(`the management API cannot be reached: ${failures.join('; ')}`);
      await this.backoff.wait(AbortSignal.timeout(REQUEST_TIMEOUT_MS));
    }
  }
}
