import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Management } from '../broker/management';

interface Line {
  url?: string;
  managementUrl?: string;
  directory?: string;
  ok?: boolean;
  error?: string;
  output?: string;
}

export type Order =
  | 'stop'
  | 'kill'
  | 'start'
  | 'pause'
  | 'resume'
  | 'reload'
  | 'backup'
  | 'memory as deployed'
  | `${'memory' | 'disk'} alarm ${'on' | 'off'}`
  | `${'rabbitmqctl' | 'rabbitmq-queues' | 'rabbitmq-upgrade'} ${string}`;

export interface ServerOptions {
  /** Options of scripts/servers/run.mjs. */
  options?: readonly string[];
  env?: Record<string, string>;
}

/** A RabbitMQ, PostgreSQL or Prometheus server for one test file, which may break it. The start takes up to 10 s. */
export class PrivateServer {
  private constructor(
    readonly url: string,
    /** URL of its management API with credentials; empty unless started with `--management`. */
    readonly managementUrl: string,
    /** Folder of its data and logs. */
    readonly directory: string,
    private readonly child: ChildProcess,
    private readonly nextLine: () => Promise<Line>,
  ) {}

  static start(kind: 'rabbitmq' | 'postgres' | 'prometheus', ...options: string[]): Promise<PrivateServer> {
    return PrivateServer.startWith(kind, { options });
  }

  static async startWith(
    kind: 'rabbitmq' | 'postgres' | 'prometheus',
    { options = [], env }: ServerOptions,
  ): Promise<PrivateServer> {
    const program = join(process.cwd(), 'scripts/servers/run.mjs');
    const child = spawn(process.execPath, [program, kind, ...options], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    // An order to a server that has ended fails because it has no answer.
    child.stdin.on('error', () => undefined);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const nextLine = async () => {
      const line = await lines.next();
      if (line.done) throw new Error(`the private ${kind} ended`);
      return JSON.parse(line.value) as Line;
    };
    const { url = '', managementUrl = '', directory = '' } = await nextLine();
    return new PrivateServer(url, managementUrl, directory, child, nextLine);
  }

  /** Management API of a RabbitMQ started with `--management`. */
  get management(): Management {
    return new Management(this.managementUrl, '%2F');
  }

  /**
   * `kill` acts like a power cut, `pause` freezes all processes of the server. The alarms are those of a broker short of memory or disk. Orders
   * are obeyed one after the other.
   *
   * @returns the output of a program
   */
  async order(order: Order): Promise<string> {
    this.child.stdin?.write(`${order}\n`);
    const { ok, error, output = '' } = await this.nextLine();
    if (!ok) throw new Error(`${order}: ${error}`);
    return output;
  }

  /**
   * Lets queues of RabbitMQ stand still, or go on: they take messages, and confirm and answer nothing. Of a quorum queue it is the leader. In one
   * order for all, because each starts an Erlang.
   */
  queues(what: 'suspend' | 'resume', ...names: string[]): Promise<string> {
    const list = names.map((name) => `<<"${name}">>`).join();
    const process = 'amqqueue:get_pid(element(2,rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>,queue,Name))))';
    return this.order(`rabbitmqctl eval [sys:${what}(${process})||Name<-[${list}]].`);
  }

  /** Stops the server and deletes its data. */
  async remove(): Promise<void> {
    // It may have ended with its server.
    const exited = this.child.exitCode === null && this.child.signalCode === null ? once(this.child, 'exit') : undefined;
    this.child.stdin?.end();
    await exited;
  }
}
