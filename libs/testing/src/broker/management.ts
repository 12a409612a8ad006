interface Connection {
  name: string;
  user: string;
  client_properties?: { connection_name?: string };
}

interface Definitions {
  queues: { name: string; durable: boolean; arguments: Record<string, unknown> }[];
  exchanges: { name: string; type: string; durable: boolean }[];
  bindings: { source: string; destination: string; routing_key: string }[];
}

/** The broker's management API, for what AMQP cannot see or do. */
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

  post(path: string, body: unknown): Promise<void> {
    return this.request('POST', path, body);
  }

  delete(path: string): Promise<void> {
    return this.request('DELETE', path);
  }

  get<T>(path: string): Promise<T> {
    return this.request('GET', path);
  }

  /** Everything that is declared in the virtual host, except what an exclusive connection declared. */
  definitions(): Promise<Definitions> {
    return this.get(`definitions/${this.vhost}`);
  }

  /** A limit that is lower than the queue's own. */
  limitQueue(queue: string, maxLength: number): Promise<void> {
    const policy = { pattern: `^${queue}$`, definition: { 'max-length': maxLength }, 'apply-to': 'queues' };
    return this.put(`policies/${this.vhost}/limit`, policy);
  }

  /** Ends the connections whose name begins so, as an operator or a failing network does. @returns how many there were */
  async killConnections(namePrefix: string): Promise<number> {
    return this.killEach(({ client_properties: properties }) => properties?.connection_name?.startsWith(namePrefix) ?? false);
  }

  /** The same for the connections of an account, whose programs need not name them. */
  async killConnectionsOf(account: string): Promise<number> {
    return this.killEach(({ user }) => user === account);
  }

  private async killEach(isMeant: (connection: Connection) => boolean): Promise<number> {
    const connections = await this.get<Connection[]>(`vhosts/${this.vhost}/connections`);
    const meant = connections.filter(isMeant);
    for (const { name } of meant) await this.delete(`connections/${encodeURIComponent(name)}`);
    return meant.length;
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
