import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { keepCalling } from '@app/testing/system/keep-calling';
import { ServiceProcess, type AppName } from '@app/testing/system/service-process';
import { DEMO_HEADERS } from '@app/testing/system/system';

const APPS: readonly AppName[] = ['users', 'notifications', 'gateway'];
const REPLICAS = 2;
const [CALLERS, RATE] = [4, 40];

export type Env = Record<string, string>;

/** A URL of the same server with another account, or with another password. */
export function as(url: string, username = new URL(url).username): string {
  const own = new URL(url);
  own.username = username;
  own.password = randomBytes(16).toString('hex');
  return own.href;
}

/** Runs a program of the operators, as `npm run` does. @throws Error with its stderr, if it fails */
export async function run(program: string, words: string[], env: Env): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...words], {
    env: { PATH: process.env.PATH, ...env },
  });
  return stdout;
}

export const setUp = (env: Env): Promise<string> => run('scripts/setup.mjs', [], { ...env, DEMO_CREDENTIALS: 'true' });

/** Two processes of each service with one environment, and a load balancer's list of gateways. */
export class Fleet {
  private readonly processes = new Map<AppName, ServiceProcess[]>();
  /** URLs of the gateways that get calls. */
  private serving: string[] = [];

  private constructor(readonly env: Env) {}

  static async start(env: Env): Promise<Fleet> {
    const fleet = new Fleet(env);
    for (const app of APPS) await fleet.add(app);
    return fleet;
  }

  private async add(app: AppName): Promise<void> {
    this.processes.set(app, await Promise.all(Array.from({ length: REPLICAS }, () => this.process(app).start())));
    if (app === 'gateway') this.serving = this.of('gateway').map(({ url }) => url);
  }

  of(app: AppName): ServiceProcess[] {
    return this.processes.get(app) ?? [];
  }

  /** One process after the other, each until it is ready. */
  async restart(app: AppName): Promise<void> {
    for (const [index, earlier] of this.of(app).entries()) {
      if (app === 'gateway') this.serving = this.serving.filter((url) => url !== earlier.url);
      await earlier.stop();
      const next = await this.process(app).start();
      this.of(app)[index] = next;
      if (app === 'gateway') this.serving.push(next.url);
    }
  }

  async restartAll(): Promise<void> {
    for (const app of APPS) await this.restart(app);
  }

  async stop(...apps: AppName[]): Promise<void> {
    for (const app of apps.length > 0 ? apps : [...APPS].reverse()) await Promise.all(this.of(app).map((one) => one.stop()));
  }

  /** Adds a notification. @returns the status of the answer */
  async call(number: number, notificationId: string, headers: Env = DEMO_HEADERS): Promise<number> {
    const data = {
      organizationId: 'org',
      documentId: 'document',
      notificationId,
      actionUser: { userId: 'actor' },
      displayHeadlineMessageTemplate: 'Hello',
      notifyUsers: [{ userId: 'reader' }],
    };
    const response = await fetch(`${this.serving[number % this.serving.length]}/v1/notifications/add`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ data }),
    });
    await response.arrayBuffer();
    return response.status;
  }

  private process(app: AppName): ServiceProcess {
    return new ServiceProcess(app, { ...this.env, RATE_LIMIT_PER_SECOND: '0', ...(app === 'gateway' && { PORT: '0' }) });
  }
}

/** The calls of a while: how many had each status. */
export type Answers = Record<number, number>;

let name = 0;

/**
 * Calls all the time while something is done.
 *
 * @param fleetNow the one whose gateways the load balancer has
 * @param added gets the ids of the notifications that were answered 200
 */
export async function underCalls(fleetNow: () => Fleet, work: () => Promise<unknown>, added: string[] = []): Promise<Answers> {
  const answers: Answers = {};
  const prefix = `run ${++name}`;
  const end = keepCalling(CALLERS, RATE, async (client, number) => {
    const id = `${prefix} ${client} ${number}`;
    const status = await fleetNow().call(client + number, id);
    answers[status] = (answers[status] ?? 0) + 1;
    if (status === 200) added.push(id);
  });
  try {
    await work();
  } finally {
    await end();
  }
  return answers;
}
