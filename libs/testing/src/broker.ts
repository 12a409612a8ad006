import { randomBytes } from 'node:crypto';
import { requiredEnv } from './required-env';

export interface TestBroker {
  /** Full rights on a virtual host that only this test file uses. */
  url: string;
  management: Management;
  drop(): Promise<void>;
}

/** Creates an empty virtual host for one test file, on the broker of the test run. */
export async function createTestBroker(): Promise<TestBroker> {
  const url = new URL(requiredEnv('TEST_AMQP_URL'));
  const vhost = `test_${randomBytes(6).toString('hex')}`;
  const management = new Management(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), vhost);
  await management.put(`vhosts/${vhost}`);
  await management.put(`permissions/${vhost}/${url.username}`, { configure: '.*', write: '.*', read: '.*' });
  url.pathname = `/${vhost}`;
  return { url: url.href, management, drop: () => management.delete(`vhosts/${vhost}`) };
}

interface Connection {
  name: string;
  client_properties?: { connection_name?: string };
}

interface Definitions {
  queues: { name: string; durable: boolean; arguments: Record<string, unknown> }[];
  exchanges: { name: string; type: string; durable: boolean }[];
  bindings: { source: string; destination: string; routing_key: string }[];
}

/** The broker's management API, for tasks that AMQP does not offer. */
export class Management {
  private readonly base: string;
  private readonly authorization: string;

  constructor(
    managementUrl: string,
    private readonly vhost: string,
  ) {
    const { origin, username, password } = new URL(managementUrl);
    this.base = `${origin}/api/`;
    this.authorization = `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`;
  }

  put(path: string, body: unknown = {}): Promise<void> {
    return this.request('PUT', path, body);
  }

  delete(path: string): Promise<void> {
    return this.request('DELETE', path);
  }

  get<T>(path: string): Promise<T> {
    return this.request('GET', path);
  }

  /** All exchanges, queues and bindings of the virtual host, except exclusive queues. */
  definitions(): Promise<Definitions> {
    return this.get(`definitions/${this.vhost}`);
  }

  /** Sets a length limit below the queue's own. */
  limitQueue(queue: string, maxLength: number): Promise<void> {
    const policy = { pattern: `^${queue}$`, definition: { 'max-length': maxLength }, 'apply-to': 'queues' };
    return this.put(`policies/${this.vhost}/limit`, policy);
  }

  /** Closes the connections with this name prefix, like an operator or a network failure. @returns their number */
  async killConnections(namePrefix: string): Promise<number> {
    const connections = await this.get<Connection[]>(`vhosts/${this.vhost}/connections`);
    const named = connections.filter(({ client_properties: properties }) => properties?.connection_name?.startsWith(namePrefix));
    for (const { name } of named) await this.delete(`connections/${encodeURIComponent(name)}`);
    return named.length;
  }

  private async request<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(this.base + path, {
      method,
      headers: { authorization: this.authorization, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }
}
