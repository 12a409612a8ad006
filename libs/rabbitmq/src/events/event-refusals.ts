import { Logger } from '@nestjs/common';
import type { TransportMetrics } from '../metrics';

/** Most refused events that are tried again. Further ones count as lost at once. */
const MAX_HELD = 10_000;
/** Pause between two log lines about one type, in milliseconds. */
const LOG_EVERY_MS = 30_000;

/** Outcome of publishing an event to an exchange. A refused event is in every bound queue except the full ones that refuse it. */
export interface EventOutcome {
  id: string;
  type: string;
  refused: boolean;
}

interface Refusing {
  since: number;
  /** Events that the listener has lost so far. */
  lost: number;
}

/**
 * Decides about events that a listener of another service refuses, because its queue is full and rejects. Each is retried for `patienceMs`. Then
 * it counts as published, and so do later events of its type, until a batch contains no refused event of this type.
 */
export class EventRefusals {
  private readonly logger = new Logger('RabbitMQ');
  /** Keyed by event type. */
  private readonly refusing = new Map<string, Refusing>();
  private readonly loggedAt = new Map<string, number>();
  /** Time of the first refusal, keyed by event id. */
  private readonly held = new Map<string, number>();

  constructor(
    private readonly patienceMs: number,
    private readonly metrics: TransportMetrics,
  ) {}

  /** @returns the ids of the events that must be published again */
  judge(outcomes: readonly EventOutcome[]): Set<string> {
    this.forgetStale();
    const again = new Set<string>();
    for (const { id, type, refused } of outcomes) {
      if (refused && this.isWorthATry(id, type)) again.add(id);
      else this.held.delete(id);
    }
    const refusedTypes = new Set(outcomes.filter(({ refused }) => refused).map(({ type }) => type));
    for (const { type } of outcomes) if (!refusedTypes.has(type)) this.end(type);
    return again;
  }

  private isWorthATry(id: string, type: string): boolean {
    const now = performance.now();
    let state = this.refusing.get(type);
    if (!state) this.refusing.set(type, (state = { since: now, lost: 0 }));
    const first = this.held.get(id) ?? now;
    const patient = now - Math.min(first, state.since) < this.patienceMs;
    if (patient && (this.held.has(id) || this.held.size < MAX_HELD)) {
      this.held.set(id, first);
      return true;
    }
    this.metrics.eventsRefused.inc({ type });
    if (state.lost++ === 0) this.tellOfLoss(type, now);
    return false;
  }

  /** Forgets events that another process has published meanwhile. The Map holds the oldest first. */
  private forgetStale(): void {
    const stale = performance.now() - 2 * this.patienceMs;
    for (const [id, first] of this.held) {
      if (first > stale) return;
      this.held.delete(id);
    }
  }

  private tellOfLoss(type: string, now: number): void {
    if (now - (this.loggedAt.get(type) ?? -Infinity) < LOG_EVERY_MS) return;
    this.loggedAt.set(type, now);
    this.logger.error({
      msg: 'a listener refuses events and loses them: its queue is full and rejects',
      type,
      advice: `find the queue among the bindings of exchange events by ${type}: consume it, delete it, or let it drop its head`,
    });
  }

  private end(type: string): void {
    const state = this.refusing.get(type);
    this.refusing.delete(type);
    if (state && state.lost > 0) this.logger.log({ msg: 'no listener refuses events any more', type, lost: state.lost });
  }
}
