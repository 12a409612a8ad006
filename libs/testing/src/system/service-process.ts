import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ReadinessReport } from '@app/runtime/readiness';
import { eventually } from '../eventually';

/** A busy machine takes half a minute to load the packages of six processes at once. */
const START_LIMIT_MS = 60_000;

export type AppName = 'gateway' | 'users' | 'notifications';

/** Apps with a URL of their own, which they log. */
const WITH_URL: readonly string[] = ['gateway', 'operator'];

/** One app as in production: its bundle in its own process, with the flags of Node that the image has. */
export class ServiceProcess {
  /** All lines of its stdout and stderr. */
  readonly output: string[] = [];
  exitCode: number | null | undefined;
  /** The checkout whose build the next start runs. By default another version, if scripts/test-compat.mjs has named one. */
  root: string;
  private child?: ChildProcess;
  private readonly facts: Record<string, unknown> = {};

  constructor(
    readonly app: AppName | 'operator',
    /** Its variables, which count at the next start. */
    readonly env: NodeJS.ProcessEnv,
  ) {
    this.root = process.env[`TEST_${app.toUpperCase()}_ROOT`] ?? process.cwd();
  }

  /** @param untilReady false: returns as soon as its health endpoint listens */
  async start({ untilReady = true } = {}): Promise<this> {
    this.exitCode = undefined;
    for (const key of Object.keys(this.facts)) delete this.facts[key];
    const child = spawn(process.execPath, [...flagsOf(this.root), this.program], {
      env: { PATH: process.env.PATH, NODE_ENV: 'production', ...this.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    child.once('exit', (code) => (this.exitCode = code));
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.output.push(line);
        if (!line.startsWith('{')) return;
        const { healthPort, url } = JSON.parse(line) as Record<string, unknown>;
        Object.assign(this.facts, healthPort !== undefined && { healthPort }, url !== undefined && { url });
      });
    }
    await this.until(() => this.facts.healthPort);
    if (untilReady) await this.untilReady();
    return this;
  }

  /** Version 0.1 has no bundles. */
  private get program(): string {
    const bundle = join(this.root, `dist/${this.app}.js`);
    return existsSync(bundle) ? bundle : join(this.root, `dist/apps/${this.app}/src/main.js`);
  }

  /** Its port of health and metrics. */
  get healthPort(): number {
    return this.facts.healthPort as number;
  }

  /** URL of the gateway, or of the operator's page. */
  get url(): string {
    return this.facts.url as string;
  }

  async health(
    kind: 'live' | 'ready',
  ): Promise<{ status: number; body: Pick<ReadinessReport, 'status'> & Partial<ReadinessReport> }> {
    const response = await fetch(`http://127.0.0.1:${this.healthPort}/health/${kind}`);
    return { status: response.status, body: (await response.json()) as ReadinessReport };
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.healthPort}/metrics`)).text();
  }

  async untilReady(): Promise<void> {
    await this.until(async () => (await this.health('ready')).status === 200 && (!WITH_URL.includes(this.app) || this.url));
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  /** @returns the exit code, null after a signal that was not caught */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.exitCode !== undefined || !this.child) return this.exitCode ?? null;
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }

  private async until(condition: () => unknown): Promise<void> {
    await eventually(async () => {
      if (this.exitCode !== undefined) return true;
      return condition();
    }, START_LIMIT_MS).catch((error: unknown) => {
      throw new Error(`${this.app} is not ready:\n${this.output.slice(-20).join('\n')}`, { cause: error });
    });
    if (this.exitCode !== undefined)
      throw new Error(`${this.app} exited with ${this.exitCode}:\n${this.output.slice(-20).join('\n')}`);
  }
}

/** Without them V8 keeps much more memory than in any deployment. Version 0.1 has no image. */
function flagsOf(root: string): string[] {
  const image = join(root, 'Dockerfile');
  const [, command = '[]'] = /^CMD (\[[^\]]*\])/m.exec(existsSync(image) ? readFileSync(image, 'utf8') : '') ?? [];
  return (JSON.parse(command.replaceAll('\\\n', '')) as string[]).filter((word) => word.startsWith('--'));
}
