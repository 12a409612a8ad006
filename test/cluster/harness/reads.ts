import type { Answered, UnderLoad } from '../../faults/harness/workload';

const PAGE_SIZE = 50;
const GIVE_UP_MS = 60_000;
const MOST_AT_ONCE = 10;

/** An open-loop reader of one document: it asks for the first page at its rate, with or without answers. */
export class Reads {
  /** Requests in order, with their status once it is known; 0 is a lost connection. */
  readonly statuses: Answered[] = [];
  private readonly running = new Set<Promise<void>>();
  private timer?: NodeJS.Timeout;

  constructor(
    private readonly system: Pick<UnderLoad, 'tenants' | 'gatewayUrl'>,
    private readonly filter: { organizationId: string; documentId: string },
    private readonly ratePerSecond: number,
  ) {}

  start(): void {
    const start = performance.now();
    let due = 0;
    this.timer = setInterval(() => {
      const now = Math.floor(((performance.now() - start) * this.ratePerSecond) / 1000);
      for (due = Math.max(due, now - MOST_AT_ONCE); due < now; due++) this.ask();
    }, 5);
  }

  /** Stops sending, and waits for every answer. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all(this.running);
  }

  private ask(): void {
    const entry: Answered = { askedAt: performance.now() };
    this.statuses.push(entry);
    const work = this.post().then((status) => {
      entry.status = status;
      entry.answeredAt = performance.now();
    });
    this.running.add(work);
    void work.finally(() => this.running.delete(work));
  }

  private async post(): Promise<number> {
    const { organizationId, documentId } = this.filter;
    try {
      const response = await fetch(`${this.system.gatewayUrl}/v1/notifications/get`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...this.system.tenants[0] },
        body: JSON.stringify({ data: { organizationId, documentId, pageSize: PAGE_SIZE } }),
        signal: AbortSignal.timeout(GIVE_UP_MS),
      });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return 0;
    }
  }
}
