import { Backoff } from '@app/amqp/backoff';
import { RIGHTS, type Account } from './accounts';
import { parseBrokerUrl } from '@app/amqp/open-connection';

const REQUEST_TIMEOUT_MS = 10_000;

export interface AccountsOptions {
  /** Of the management API: `http://host:15672`. User and password, if not in it, are those of the broker's URL. */
  managementUrl: string;
  /** Of the full-rights account, with the virtual host. */
  amqpUrl: string;
  /** With which URL each account will connect: its user name and password are what it gets. */
  accounts: Partial<Record<Account, string>>;
  /** How long to wait for a broker that is not up yet, in milliseconds. Default 0. */
  waitMs?: number;
}

/**
 * Creates the accounts, or gives those that exist the password and the rights of now.
 *
 * @returns the names of the accounts
 * @throws Error that says what the management API answered; never with a password in it
 */
export async function declareAccounts({ managementUrl, amqpUrl, accounts, waitMs = 0 }: AccountsOptions): Promise<string[]> {
  const api = new ManagementApi(managementUrl, amqpUrl, performance.now() + waitMs);
  // As it stands in the URL: encoded.
  const { vhost } = parseBrokerUrl(amqpUrl);
  const declared: string[] = [];
  for (const [account, url] of Object.entries(accounts) as [Account, string][]) {
    const { username, password } = parseBrokerUrl(url);
    const user = encodeURIComponent(username);
    const { commands, ...permissions } = RIGHTS[account];
    await api.put(`users/${user}`, { password, tags: '' });
    // Before the permissions: an account without topic permissions may use every routing key.
    await api.put(`topic-permissions/${vhost}/${user}`, { exchange: 'commands', write: commands, read: '^$' });
    await api.put(`permissions/${vhost}/${user}`, permissions);
    declared.push(username);
  }
  return declared;
}

class ManagementApi {
  private readonly base: string;
  private readonly authorization: string;
  private readonly backoff = new Backoff();

  constructor(
    managementUrl: string,
    amqpUrl: string,
    private readonly waitUntil: number,
  ) {
    const url = new URL(managementUrl);
    const admin = parseBrokerUrl(amqpUrl);
    const username = decodeURIComponent(url.username) || admin.username;
    const password = decodeURIComponent(url.password) || admin.password;
    // fetch() refuses a URL that holds credentials.
    url.username = url.password = '';
    this.base = `${url.href.replace(/\/$/, '')}/api/`;
    this.authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }

  async put(path: string, body: unknown): Promise<void> {
    const response = await this.send(this.base + path, {
      method: 'PUT',
      headers: { authorization: this.authorization, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`the management API answered ${response.status} to PUT ${path}`);
  }

  private async send(url: string, request: RequestInit): Promise<Response> {
    for (;;) {
      try {
        return await fetch(url, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
      } catch (error) {
        const { message, cause } = error as Error;
        const { code } = (cause ?? {}) as NodeJS.ErrnoException;
        if (performance.now() > this.waitUntil) {
          throw new Error(`the management API cannot be reached: ${code ?? message}`, { cause: error });
        }
        await this.backoff.wait(AbortSignal.timeout(REQUEST_TIMEOUT_MS));
      }
    }
  }
}
