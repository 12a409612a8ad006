import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';

const running = new Set<Script>();

/** A small program with the modules of scripts/, which Jest's own loader cannot import. It may import from './scripts/…'. */
export class Script {
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private readonly lines: AsyncIterator<string>;
  private readonly stderr: Promise<string>;
  /** Resolves with the exit code, or with the signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Resolves when nobody holds its output any more: it has ended, and so have those that it left behind. */
  readonly allEnded: Promise<unknown>;

  constructor(program: string, args: string[] = []) {
    this.child = spawn(process.execPath, ['--input-type=module', '-e', program, '--', ...args], { stdio: 'pipe' });
    const input = createInterface({ input: this.child.stdout });
    this.lines = input[Symbol.asyncIterator]();
    this.allEnded = once(this.child.stdout, 'close');
    this.stderr = text(this.child.stderr);
    this.ended = once(this.child, 'exit').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
    running.add(this);
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** The next line that it prints, parsed. */
  async next(): Promise<unknown> {
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`The script has ended: ${await this.stderr}`);
    return JSON.parse(value);
  }

  /** All that it prints, for one that prints text. */
  async outcome(): Promise<{ code: number | NodeJS.Signals; stdout: string; stderr: string }> {
    const lines: string[] = [];
    for (let line = await this.lines.next(); !line.done; line = await this.lines.next()) lines.push(line.value);
    return { code: await this.ended, stdout: lines.join('\n'), stderr: await this.stderr };
  }

  /** A word for the program, which reads its input. */
  say(word: string): void {
    this.child.stdin.write(word);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  static async endAll(): Promise<void> {
    for (const script of running) {
      script.kill();
      await script.ended;
    }
    running.clear();
  }
}

/** A directory for one test file. */
export function testDirectory(): { path: (name: string) => string; remove: () => void } {
  const directory = mkdtempSync(join(tmpdir(), 'scripts-'));
  return { path: (name) => join(directory, name), remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** Waits for a file. */
export async function appears(file: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const since = Date.now();
    const timer = setInterval(() => {
      if (!existsSync(file) && Date.now() - since < 60_000) return;
      clearInterval(timer);
      if (existsSync(file)) resolve();
      else reject(new Error(`${file} was not made`));
    }, 10);
  });
}
