import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A program of this folder in its own process, controlled by messages. The load must not disturb the measuring process. */
export class Child {
  private readonly process: ChildProcess;
  private readonly ended: Promise<unknown>;

  private constructor(
    readonly program: string,
    private readonly onMessage: (message: never) => void,
  ) {
    this.process = fork(join(process.cwd(), 'test/neighbours', program), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.ended = once(this.process, 'exit');
  }

  /** Resolves when it reports its start. @throws when it ends before */
  static async start<Message>(program: string, options: object, onMessage: (message: Message) => void): Promise<Child> {
    const child = new Child(program, onMessage);
    const started = child.when('started');
    child.process.on('message', (message) => child.onMessage(message as never));
    child.process.send(options);
    await started;
    return child;
  }

  /** The next message with this property. @throws when it ends before */
  when(property: string): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      const onMessage = (message: Record<string, unknown>) => {
        if (!(property in message)) return;
        this.process.off('message', onMessage);
        resolve(message);
      };
      this.process.on('message', onMessage);
      void this.ended.then(() => reject(new Error(`${this.program} ended before it was ${property}`)));
    });
  }

  /** Sends an order, and resolves when the child reports it as done. */
  async order(order: string): Promise<void> {
    const done = this.when(order);
    this.process.send(order);
    await done;
  }

  /** Asks it to finish. @returns its message with the property `done` */
  async stop(): Promise<Record<string, unknown>> {
    const done = this.when('done');
    this.process.send('stop');
    const said = await done;
    await this.ended;
    return said;
  }

  /** Kills it. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}
