import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Management } from './management';

interface Line {
  url?: string;
  managementUrl?: string;
  ok?: boolean;
  error?: string;
}

export type Order =
  'stop' | 'kill' | 'start' | 'pause' | 'resume' | 'memory as deployed' | `${'memory' | 'disk'} alarm ${'on' | 'off'}`;

/** A RabbitMQ or a PostgreSQL that only one test file uses, to be broken. Takes up to 10 s to start. */
export class PrivateServer {
  private constructor(
    readonly url: string,
    /** Of its management API, with credentials; empty unless started with `--management`. */
    readonly managementUrl: string,
    private readonly child: ChildProcess,
    private readonly nextLine: () => Promise<Line>,
  ) {}

  static async start(kind: 'rabbitmq' | 'postgres', ...options: string[]): Promise<PrivateServer> {
    const program = join(process.cwd(), 'scripts/servers/run.mjs');
    const child = spawn(process.execPath, [program, kind, ...options], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const nextLine = async () => {
      const line = await lines.next();
      if (line.done) throw new Error(`the private ${kind} ended`);
      return JSON.parse(line.value) as Line;
    };
    const { url = '', managementUrl = '' } = await nextLine();
    return new PrivateServer(url, managementUrl, child, nextLine);
  }

  /** That of a RabbitMQ started with `--management`. */
  get management(): Management {
    return new Management(this.managementUrl, '%2F');
  }

  /** `kill` is what a power cut does, `pause` freezes all its processes. Alarms are those of a broker that is short of something. */
  async order(order: Order): Promise<void> {
    this.child.stdin?.write(`${order}\n`);
    const { ok, error } = await this.nextLine();
    if (!ok) throw new Error(`${order}: ${error}`);
  }

  /** Ends it and deletes its data. */
  async remove(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.stdin?.end();
    await exited;
  }
}
