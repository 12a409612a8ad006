import { createHash, randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { eventually } from '@app/testing/eventually';
import { System } from '@app/testing/system/system';

/** Longer than any operation of a service takes, in milliseconds. */
const GIVE_UP_MS = 10_000;

export interface Tenant {
  apiKey: string;
  token: string;
  headers: { 'x-svc-api-key': string; 'x-svc-auth-token': string };
}

/** A system at the most verbose log level, with a check of every output line. */
export class WatchedSystem {
  /** Marker in every text that must not be logged. */
  readonly canary = `canary${randomBytes(6).toString('hex')}`;
  private lines = 0;
  private readonly outcomes = new Map<unknown, string>();
  private readonly findings: string[] = [];
  private readonly secrets: RegExp;

  private constructor(
    readonly system: System,
    readonly tenants: readonly Tenant[],
    readonly sql: Pool,
    private readonly database: TestDatabase,
  ) {
    const hidden = [
      ...tenants.flatMap(({ token }) => [token, createHash('sha256').update(token).digest('hex')]),
      ...[system.amqpUrl, system.databaseUrl].map((url) => decodeURIComponent(new URL(url).password)),
      this.canary,
    ];
    // As text, as a printed Buffer, and as a Buffer in JSON.
    const forms = hidden.flatMap((text) => [text, Buffer.from(text).toString('hex'), [...Buffer.from(text)].join(',')]);
    this.secrets = new RegExp(forms.map((form) => form.replace(/\W/g, '\\$&')).join('|'));
  }

  static async start(tenants: number): Promise<WatchedSystem> {
    const database = await createEmptyDatabase();
    const url = new URL(database.url);
    // The database server of the test run accepts any password.
    url.password ||= randomBytes(16).toString('hex');
    const system = await System.start({ databaseUrl: url.href, env: { LOG_LEVEL: 'trace' } });
    const keys = await Promise.all(Array.from({ length: tenants }, () => system.createKey()));
    return new WatchedSystem(
      system,
      keys.map((headers) => ({ apiKey: headers['x-svc-api-key'], token: headers['x-svc-auth-token'], headers })),
      new Pool({ connectionString: url.href, max: 4 }),
      database,
    );
  }

  /** Whether this is the API key of a tenant: one of `tenants`, or `demo-key`, which set-up creates and the corpus contains. */
  hasTenant(apiKey: unknown): boolean {
    return apiKey === 'demo-key' || this.tenants.some((tenant) => tenant.apiKey === apiKey);
  }

  /** Checks the new output, and discards it: a long run writes more than fits in memory. */
  readLogs(): void {
    const { setUpOutput, services } = this.system;
    const outputs = [['set-up', setUpOutput], ...Object.values(services).map(({ app, output }) => [app, output])] as [
      string,
      string[],
    ][];
    for (const [name, output] of outputs) {
      for (const line of output) this.judge(name, line);
      this.lines += output.length;
      output.length = 0;
    }
    for (const { app, exitCode } of Object.values(services))
      if (exitCode !== undefined) this.findings.push(`${app} exited with ${exitCode}`);
  }

  /** Outcome of a message, from the log of its own service: its questions to another service have the same request id. */
  async outcomeOf(pattern: string, requestId: string): Promise<string> {
    const name = `${pattern} ${requestId}`;
    const outcome = await eventually(() => {
      this.readLogs();
      return this.outcomes.get(name);
    }, GIVE_UP_MS);
    this.outcomes.delete(name);
    return outcome as string;
  }

  /** @returns the number of checked lines, and their problems */
  get verdict(): { lines: number; findings: string[] } {
    return { lines: this.lines, findings: this.findings.slice(0, 20) };
  }

  async stop(): Promise<void> {
    await this.sql.end();
    await this.system.stop();
    await this.database.drop();
  }

  private judge(name: string, line: string): void {
    const found = this.secrets.exec(line);
    if (found) this.findings.push(`${name} logged a secret, ${found[0]}: ${line.slice(0, 500)}`);
    if (name !== 'set-up' && (!line.startsWith('{') || /^\{"level":[56]0/.test(line)))
      this.findings.push(`${name} logged ${line.slice(0, 1000)}`);
    if (!line.includes('"requestId":"case ')) return;
    const { msg, pattern, requestId, outcome } = JSON.parse(line) as Record<string, unknown>;
    if (msg === 'settled') this.outcomes.set(`${pattern as string} ${requestId as string}`, outcome as string);
  }
}
