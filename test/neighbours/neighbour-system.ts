import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Pool } from 'pg';
import { ACCOUNTS } from '@app/rabbitmq-admin/accounts/rights';
import { QUEUES } from '@app/rabbitmq/topology/topology';
import { freePort } from '@app/testing/free-port';
import type { Management } from '@app/testing/broker/management';
import { PrivateServer } from '@app/testing/system/private-server';
import { ServiceProcess, type AppName } from '@app/testing/system/service-process';
import type { Credentials } from '../faults/harness/cluster';
import { Child } from './child';

/** A broker account that the accounts tool created for another service. */
export interface ForeignAccount {
  name: string;
  url: string;
  /** The exchange to which it may publish. */
  exchange: string;
  /** Queues that were declared for it; absent when it declares its own queues. */
  queues?: string[];
}

/** Means of the attackers: least rights, and the names of other tenants. */
export interface Target {
  gatewayUrl: string;
  tenant: Credentials;
  /** A thousand API keys of the attacker itself. */
  keys: Credentials[];
  /** API keys, which are not secret, of tenants for which it has no grant. */
  victims: string[];
  publisher: ForeignAccount;
  /** A publisher of the same operation in the lane whose exchange has the bindings of all operations. */
  publisherOfLaneZero: ForeignAccount;
  caller: ForeignAccount;
  listener: ForeignAccount;
  /** An account with the listener rights of the first version: it declares its own queues. */
  oldListener: ForeignAccount;
  /** The same, with the right to publish notifications too. */
  oldBoth: ForeignAccount;
  /** URL of the full-rights account, to fill queues that only our own failures can fill. */
  operatorUrl: string;
}

const KEYS = 1000;
const SHORT_RETRIES = 'operator-policies/%2F/short-retries';

/** Gateway, users and two writers as processes, each with its own broker account, without proxies in front of the servers. */
export class NeighbourSystem {
  /** Credentials of the good tenant, of a tenant that must never see its data, and of the attacker. */
  tenants: readonly Credentials[];
  target: Target;
  sql: Pool;
  gatewayUrl: string;
  /** Events received by the good listener: emitted by organization, with the id of the notification. */
  readonly events = new EventEmitter();
  /** Known leaks between tenants: they stay in the tables, but only one row of the test is at fault. */
  readonly found = new Set<string>();
  private apps: Record<'gateway' | 'users' | 'writer' | 'other writer', ServiceProcess>;
  private listener?: Child;
  private retriesAreShort = false;
  private readonly password = randomBytes(12).toString('hex');

  private constructor(
    readonly broker: PrivateServer,
    readonly database: PrivateServer,
  ) {}

  static async start(): Promise<NeighbourSystem> {
    const [broker, database] = await Promise.all([
      PrivateServer.start('rabbitmq', '--management'),
      PrivateServer.start('postgres', '--fsync'),
    ]);
    const system = new NeighbourSystem(broker, database);
    try {
      await system.prepare();
      return system;
    } catch (error) {
      await system.remove();
      throw error;
    }
  }

  get management(): Management {
    return this.broker.management;
  }

  get services(): [string, ServiceProcess][] {
    return Object.entries(this.apps ?? {});
  }

  get writers(): [ServiceProcess, ServiceProcess] {
    return [this.apps.writer, this.apps['other writer']];
  }

  /** Restarts all processes, and empties the queues. @param writerEnv additional settings of the writers */
  async renew(writerEnv: Record<string, string> = {}): Promise<void> {
    await Promise.all(this.services.map(([, process]) => process.stop('SIGKILL')));
    for (const { name } of QUEUES) await this.management.delete(`queues/%2F/${name}/contents`);
    this.apps = {
      gateway: this.app('gateway', { PORT: new URL(this.gatewayUrl).port }),
      users: this.app('users'),
      writer: this.app('notifications', writerEnv),
      'other writer': this.app('notifications', writerEnv),
    };
    await Promise.all(this.services.map(([, process]) => process.start()));
  }

  /** Deletes the attackers' queues, dead letters and unfinished erasures, like an operator afterwards. */
  async forget(): Promise<void> {
    // They would go on beside the next rows.
    for (const schema of ['users', 'notifications'])
      await this.sql.query(`DELETE FROM ${schema}.erasures WHERE api_key = $1`, [this.target.tenant['x-svc-api-key']]);
    if (this.retriesAreShort) await this.management.delete(SHORT_RETRIES);
    this.retriesAreShort = false;
    const { listener, oldListener, oldBoth } = this.target;
    const queues = await this.management.get<{ name: string }[]>('queues/%2F?columns=name');
    const isTheirs = (name: string) => [listener, oldListener, oldBoth].some((account) => name.startsWith(`${account.name}.`));
    const declared = queues.filter(({ name }) => isTheirs(name) && !listener.queues?.includes(name));
    for (const { name } of declared) await this.management.delete(`queues/%2F/${encodeURIComponent(name)}`);
    const letters = QUEUES.filter(({ name }) => /\.(dead|refused)$/.test(name));
    for (const { name } of letters) await this.management.delete(`queues/%2F/${name}/contents`);
  }

  /** Shortens the delays of the writers' retries, until {@link forget}. */
  async shortenRetries(milliseconds: number): Promise<void> {
    const policy = { pattern: '^notifications\\.retry\\.', definition: { 'message-ttl': milliseconds }, 'apply-to': 'queues' };
    await this.management.put(SHORT_RETRIES, policy);
    this.retriesAreShort = true;
  }

  async remove(): Promise<void> {
    await Promise.all(this.services.map(([, process]) => process.stop('SIGKILL')));
    await this.listener?.kill();
    await this.sql?.end();
    await Promise.all([this.broker.remove(), this.database.remove()]);
  }

  async tool(program: string, ...parameters: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(process.execPath, [join(process.cwd(), program), ...parameters], {
      env: { PATH: process.env.PATH, ...this.environment },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  }

  private get environment(): Record<string, string> {
    return {
      AMQP_URL: this.broker.url,
      DATABASE_URL: this.database.url,
      RABBITMQ_MANAGEMENT_URL: this.broker.managementUrl,
      ...Object.fromEntries(ACCOUNTS.map((account) => [`${account.toUpperCase()}_AMQP_URL`, this.urlOf(account)])),
    };
  }

  private urlOf(account: string): string {
    const url = new URL(this.broker.url);
    url.username = account;
    url.password = this.password;
    return url.href;
  }

  private app(name: AppName, env: Record<string, string> = {}): ServiceProcess {
    return new ServiceProcess(name, { ...this.environment, ...env });
  }

  private async prepare(): Promise<void> {
    await this.broker.order('memory as deployed');
    this.sql = new Pool({ connectionString: this.database.url, max: 2 });
    this.sql.on('error', () => undefined);
    this.gatewayUrl = `http://127.0.0.1:${await freePort()}`;
    await this.tool('scripts/setup.mjs');
    const [tenants, [publisher, caller, publisherOfLaneZero], listener, goodListener] = await Promise.all([
      this.newKeys('tenant', 3),
      this.newPublishers(),
      this.newAccount('bad-listener', '--events', 'notification.added.v1,user.added.v1'),
      this.newAccount('good-listener', '--events', 'notification.added.v1'),
    ]);
    this.tenants = tenants;
    const apiKey = tenants[2]['x-svc-api-key'];
    await Promise.all(
      [publisher, caller, publisherOfLaneZero].map(({ name }) =>
        this.tool('dist/apps/users/src/tools/keys.main.js', 'grant', apiKey, '--publisher', name),
      ),
    );
    this.target = {
      gatewayUrl: this.gatewayUrl,
      tenant: this.tenants[2],
      keys: await this.newKeys('key', KEYS),
      victims: this.tenants.slice(0, 2).map((tenant) => tenant['x-svc-api-key']),
      publisher,
      publisherOfLaneZero,
      caller,
      listener,
      oldListener: await this.newOldAccount('old-listener'),
      oldBoth: await this.newOldAccount('old-both', 'commands'),
      operatorUrl: this.broker.url,
    };
    await this.renew();
    const [queue] = goodListener.queues ?? ['good-listener.all'];
    const options = { url: goodListener.url, queue, declare: !goodListener.queues, apiKey: this.tenants[0]['x-svc-api-key'] };
    this.listener = await Child.start(
      'good-listener.mjs',
      options,
      ({ organizationId, id }: { organizationId?: string; id?: string }) =>
        organizationId && this.events.emit(organizationId, id),
    );
  }

  /** One after the other, so that the tool gives each a lane of its own. */
  private async newPublishers(): Promise<[ForeignAccount, ForeignAccount, ForeignAccount]> {
    const publishes = ['--operations', 'notifications.add.v1'];
    return [
      await this.newAccount('bad-publisher', ...publishes),
      await this.newAccount('bad-caller', '--operations', 'notifications.add.v1,notifications.get.v1', '--replies'),
      await this.newAccount('bad-lane-zero', ...publishes, '--lane', '0'),
    ];
  }

  private async newAccount(name: string, ...purpose: string[]): Promise<ForeignAccount> {
    const made = await this.tool('dist/libs/rabbitmq-admin/src/accounts/accounts.main.js', 'create', name, ...purpose, '--json');
    return { exchange: 'commands', ...(JSON.parse(made) as Pick<ForeignAccount, 'name' | 'url'>) };
  }

  /** Creates a listener like the accounts tool of the first version did. Such accounts still exist. @param more further write permissions */
  private async newOldAccount(name: string, ...more: string[]): Promise<ForeignAccount> {
    const own = `${name}\\..*`;
    const { management } = this;
    await management.put(`users/${name}`, { password: this.password, tags: 'collaboration-integration' });
    const events = '^(notification\\.added\\.v1|user\\.added\\.v1)$';
    const commands = more.length > 0 ? '^notifications\\.add\\.v1$' : '^$';
    await management.put(`topic-permissions/%2F/${name}`, { exchange: 'commands', write: commands, read: '^$' });
    await management.put(`topic-permissions/%2F/${name}`, { exchange: 'events', write: '.*', read: events });
    const write = `^(${[...more, own].join('|')})$`;
    await management.put(`permissions/%2F/${name}`, { configure: `^${own}$`, write, read: `^(events|${own})$` });
    return { name, url: this.urlOf(name), exchange: 'commands' };
  }

  /** Creates all keys with one statement, because the tool creates one key at a time. */
  private async newKeys(prefix: string, count: number): Promise<Credentials[]> {
    const keys = Array.from({ length: count }, (_, number) => ({
      'x-svc-api-key': `${prefix}-${number}`,
      'x-svc-auth-token': randomBytes(32).toString('base64url'),
    }));
    await this.sql.query(
      `WITH created AS (INSERT INTO users.api_keys (key, name) SELECT key, key FROM unnest($1::text[]) AS key)
       INSERT INTO users.tokens (id, api_key, hash) SELECT key, key, hash FROM unnest($1::text[], $2::bytea[]) AS t (key, hash)`,
      [keys.map((key) => key['x-svc-api-key']), keys.map((key) => createHash('sha256').update(key['x-svc-auth-token']).digest())],
    );
    return keys;
  }
}
