import type { NestLogger } from '@app/runtime/logger';

const LOG_EVERY_MS = 1000;
/** Lines of one status in that time. */
const MOST_LINES = 10;

/**
 * Log lines about requests whose caller has proved no API key. Anybody can send any number of them, so each status has a few lines a second, and
 * one more that counts the rest. Metrics count all of them.
 */
export class StrangerLines {
  private readonly requests = new Map<number, number>();

  constructor(private readonly logger: NestLogger) {}

  /** Writes the line, if its status has one left. */
  write(status: number, line: object): void {
    if (this.requests.size === 0) setTimeout(() => this.report(), LOG_EVERY_MS).unref();
    const requests = (this.requests.get(status) ?? 0) + 1;
    this.requests.set(status, requests);
    if (requests > MOST_LINES) return;
    if (status >= 500) this.logger.warn(line);
    else this.logger.log(line);
  }

  private report(): void {
    for (const [status, requests] of this.requests)
      if (requests > MOST_LINES)
        this.logger.warn({ msg: 'more requests without known credentials', status, requests: requests - MOST_LINES });
    this.requests.clear();
  }
}
