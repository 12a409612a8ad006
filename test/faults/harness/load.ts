import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Cluster } from './cluster';
import { Journal, type Ask } from './journal';

export interface LoadOptions {
  /** URL of the gateway for a tenant. */
  tenant: number;
  ms: number;
  /** Open loop: sends at this rate, with or without answers. */
  ratePerSecond?: number;
  /** Closed loop: this number of calls at any time. */
  inFlight?: number;
}

/** Requests and answers of a client in its own process. */
export class Load {
  readonly documentId = 'document';
  readonly journal = new Journal();
  private asks: Ask[] = [];

  private constructor(
    readonly organizationId: string,
    private readonly options: LoadOptions,
  ) {}

  /** Resolves when every call has its answer. */
  static async run(cluster: Cluster, name: string, options: LoadOptions): Promise<Load> {
    const load = new Load(name, options);
    const parameters = {
      ...options,
      url: cluster.gatewayUrl,
      headers: cluster.tenants[options.tenant],
      organizationId: load.organizationId,
      documentId: load.documentId,
      path: load.journal.path,
    };
    const program = join(process.cwd(), 'test/faults/harness/load-generator.mjs');
    const child = spawn(process.execPath, [program, JSON.stringify(parameters)], { stdio: ['ignore', 'inherit', 'inherit'] });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`the load generator ended with ${code}`);
    load.asks = load.journal.read();
    return load;
  }

  count(...statuses: number[]): number {
    return this.of(statuses).length;
  }

  get asked(): number {
    return this.asks.length;
  }

  /** Answers of 200 per second. */
  get goodput(): number {
    return this.count(200) / (this.options.ms / 1000);
  }

  /** Percentile of the answer times in milliseconds, without the delay by the machine itself. */
  percentile(percent: number, ...statuses: number[]): number {
    return percentile(
      percent,
      this.of(statuses).map(({ answer }) => Math.max(0, (answer?.ms ?? Infinity) - (answer?.noiseMs ?? 0))),
    );
  }

  /** Refusals without Retry-After. */
  get withoutRetryAfter(): number {
    return this.of([429]).filter(({ answer }) => answer?.retryAfter === undefined).length;
  }

  private of(statuses: number[]): Ask[] {
    return this.asks.filter(({ answer }) => answer && statuses.includes(answer.status));
  }
}

/** The percentile of values. */
export function percentile(percent: number, values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0;
}
