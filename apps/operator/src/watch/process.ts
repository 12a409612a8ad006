import { readingOf, type Reading } from './reading';

/** Longer than a process waits for its slowest dependency when it is asked for its readiness. */
const TIMEOUT_MS = 5000;
const MOST_BYTES = 4 * 1024 * 1024;
/** Rates and latencies are those of the last 10 s. */
const WINDOW_MS = 10_000;

export type State = 'ready' | 'impaired' | 'not ready' | 'does not answer';

/** State of one dependency of a process. */
export interface Dependency {
  name: string;
  /** Absent while it can be used. */
  reason?: string;
}

/** Calls of each API key since the start of a gateway process. */
export type Tenants = ReadonlyMap<string, number>;

/** One process of the system, as its operations port shows it. */
export class WatchedProcess {
  state: State = 'does not answer';
  /** Why it does not answer. */
  reason = 'was not asked yet';
  dependencies: Dependency[] = [];
  private readings: { reading: Reading; tenants: Tenants }[] = [];
  private asking?: Promise<void>;
  /** Also while it does not answer. */
  private known?: Reading;

  constructor(readonly address: string) {}

  /** Asks once; while an earlier question is open, it does not ask. Never rejects. */
  ask(): void {
    this.asking ??= this.askAll().finally(() => (this.asking = undefined));
  }

  /** The newest reading; undefined while it does not answer. */
  get now(): Reading | undefined {
    return this.readings.at(-1)?.reading;
  }

  /** The oldest reading of the window; undefined until there are two. */
  get before(): Reading | undefined {
    return this.readings.length > 1 ? this.readings[0]?.reading : undefined;
  }

  get service(): string {
    return this.known?.service ?? 'unknown';
  }

  /** Calls a second of each API key. */
  get tenants(): [key: string, perSecond: number][] {
    const [first, last] = [this.readings[0], this.readings.at(-1)];
    if (!first || !last || first === last) return [];
    const seconds = (last.reading.at - first.reading.at) / 1000;
    return [...last.tenants].map(([key, calls]) => [key, Math.max(0, calls - (first.tenants.get(key) ?? 0)) / seconds]);
  }

  private async askAll(): Promise<void> {
    try {
      const [ready, metrics, tenants] = await Promise.all([
        get(`http://${this.address}/health/ready`, [200, 503]),
        get(`http://${this.address}/metrics`, [200]),
        // Also while it may be one: without the first counts, all calls so far would seem to be new.
        (this.known?.service ?? 'gateway') === 'gateway' ? get(`http://${this.address}/tenants`, [200, 404]) : '',
      ]);
      this.takeReadiness(ready);
      this.takeReading(readingOf(metrics, performance.now()), tenantsOf(tenants));
    } catch (error) {
      this.state = 'does not answer';
      this.reason = reasonOf(error);
      this.dependencies = [];
      this.readings = [];
    }
  }

  private takeReadiness(text: string): void {
    const { status, checks = {} } = JSON.parse(text) as { status?: string; checks?: Record<string, string> };
    this.dependencies = Object.entries(checks).map(([name, found]) => ({
      name,
      ...(found !== 'up' && { reason: String(found) }),
    }));
    const isWhole = this.dependencies.every(({ reason }) => reason === undefined);
    this.state = status !== 'ok' ? 'not ready' : isWhole ? 'ready' : 'impaired';
  }

  private takeReading(reading: Reading, tenants: Tenants): void {
    this.known = reading;
    this.readings = this.readings.filter(
      ({ reading: { at, startedAt } }) => startedAt === reading.startedAt && reading.at - at <= WINDOW_MS,
    );
    this.readings.push({ reading, tenants });
  }
}

async function get(url: string, statuses: readonly number[]): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' });
  if (!statuses.includes(response.status)) throw new Error(`answers ${response.status} to ${new URL(url).pathname}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error(`${new URL(url).pathname} has more than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** A gateway of an earlier version has no such document. */
function tenantsOf(text: string): Tenants {
  const { calls = {} } = text.startsWith('{') ? (JSON.parse(text) as { calls?: Record<string, number> }) : {};
  return new Map(Object.entries(calls));
}

function reasonOf(error: unknown): string {
  const { message, name, cause } = error as Error;
  if (name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1000} s`;
  return (cause as NodeJS.ErrnoException | undefined)?.code ?? message;
}
