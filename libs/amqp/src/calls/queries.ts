import { notPublished, unavailable } from './call-errors';
import type { Request } from '../messages/message-properties';
import { InFlight } from '../publishing/in-flight';
import type { RepetitionReason } from '../connection/observer';
import { NotWritten, type PublishOutcome } from '../publishing/publisher';
import { QueueConfirms, SILENT } from '../publishing/queue-confirms';
import { NEW, UNSENT, type Query, type QueryTransport } from './query';
import { Repetitions } from './repetitions';

/** Time for the answer, before a query is asked again. It doubles with each time. */
const PATIENCE_MS = 400;
/** How often a query is looked at. Each copy may be delivered to a consumer that stands still, and the next one goes to another. */
const MOST_LOOKS = 3;
/** The same after a refusal: a queue that comes back on its node takes queries before it has consumers. */
const PATIENCE_AFTER_REFUSAL_MS = 100;
/** How long queries go to the standby exchange before the first exchange is tried again. */
const AWAY_MS = 5000;
/** Marks the correlation id of a copy that went to the standby exchange: as often as its number says. */
const STANDBY_MARK = '~';

/**
 * Asks queries in a way that no end of one broker node loses them.
 *
 * A query queue is fast, because it is a classic queue on one node. While that node is away, queries go to the standby exchange, whose quorum
 * queue has a copy on each node. Asking twice is harmless, because a query changes nothing.
 */
export class Queries {
  private readonly asked = new InFlight<Query>();
  /** Until when queries with a routing key go to the standby exchange, in milliseconds of `performance.now()`. */
  private readonly awayUntil = new Map<string, number>();
  /** Time of the last answer through the first exchange, by routing key. */
  private readonly answeredAt = new Map<string, number>();
  /** Time of the last refusal by the queue behind the first exchange, by routing key. */
  private readonly refusedAt = new Map<string, number>();
  private readonly standbyConfirms = new Map<string, QueueConfirms>();
  private readonly repetitions = new Repetitions();

  /** @param standby absent: queries are asked again only after a lost connection */
  constructor(
    private readonly transport: QueryTransport,
    private readonly first: string,
    private readonly standby?: string,
  ) {}

  /** Publishes a query. Its answer or error reaches the transport under `correlationId`. */
  ask(request: Request): void {
    const query: Query = { ...request, ...NEW, askedAt: performance.now() };
    this.asked.set(request.correlationId, query);
    this.repetitions.asked();
    this.publish(query);
  }

  has(correlationId: string): boolean {
    return this.asked.get(correlationId) !== undefined;
  }

  /** @returns the correlation id of the query, which differs from the reply's when a standby copy was answered */
  answered(correlationId: string): string {
    const [id, ...marks] = correlationId.split(STANDBY_MARK);
    const query = this.take(id);
    if (query) this.noteAnswer(query, marks.length);
    return id;
  }

  /** @param standbyCopy number of the copy that was answered; 0 is the copy for the first exchange */
  private noteAnswer(query: Query, standbyCopy: number): void {
    const { pattern } = query.operation;
    const { first, askedAt, repetitions } = query;
    const validCopy = standbyCopy - query.voidStandbyCopies;
    // While the first exchange takes nothing, the first standby copy is the query itself.
    const isLater = validCopy > (first === 'none' ? 1 : 0);
    if (repetitions > 0 && isLater) this.repetitions.helped(query, validCopy > 1);
    if (standbyCopy === 0) {
      this.repetitions.answered(query);
      this.answeredAt.set(pattern, performance.now());
      this.awayUntil.delete(pattern);
    } else if (validCopy > 0 && first === 'confirmed' && (this.answeredAt.get(pattern) ?? -Infinity) < askedAt) {
      // With Khepri the broker confirms messages to a queue on a node that is cut off, and nobody gets them.
      this.setAway(pattern, 'unanswered', this.all());
    }
  }

  /** The query was given up. */
  forget(correlationId: string): void {
    this.take(correlationId);
  }

  /** Asks queries again, on a new channel. Ids of calls that are no queries are ignored. */
  askAgain(correlationIds: readonly string[]): void {
    for (const id of correlationIds) {
      const query = this.asked.get(id);
      if (!query) continue;
      const lost = { voidStandbyCopies: query.standbyCopies, lostChannels: query.lostChannels + 1 };
      Object.assign(query, { ...UNSENT, ...lost, askedAt: performance.now() });
      this.transport.repeated(query.operation.pattern, 'lost');
      this.publish(query);
    }
  }

  /** Gives queries up: nothing was changed, and the caller may ask again. Ids of calls that are no queries are ignored. */
  giveUp(correlationIds: readonly string[], reason: string): void {
    for (const id of correlationIds) if (this.has(id)) this.fail(id, unavailable(reason));
  }

  /** The broker takes messages again after an alarm. */
  restart(): void {
    for (const confirms of this.standbyConfirms.values()) confirms.restart();
  }

  private publish(query: Query): void {
    const away = this.awayUntil.get(query.operation.pattern);
    if (away !== undefined && away > performance.now()) return this.repeat(query);
    void this.send(query, false);
    if (away === undefined) return;
    // One query in a while goes both ways, to find out whether the first exchange answers again.
    this.awayUntil.set(query.operation.pattern, performance.now() + AWAY_MS);
    this.repeat(query);
  }

  private async send(query: Query, isStandby: boolean): Promise<void> {
    const { correlationId, deadline, lostChannels } = query;
    const timeoutMs = Math.floor(deadline - performance.now());
    if (!this.has(correlationId)) return;
    if (timeoutMs <= 0) {
      if (query.copies === 0) this.fail(correlationId, unavailable('no time is left'));
      return;
    }
    query.copies++;
    if (isStandby) Object.assign(query, { standby: 'sent', standbyCopies: query.standbyCopies + 1 });
    else query.first = 'sent';
    if (!isStandby && this.standby !== undefined) this.watch(query);
    let error: Error | undefined;
    try {
      const outcome = isStandby
        ? await this.publishStandby(query, timeoutMs)
        : await this.transport.publish(this.first, query, correlationId, timeoutMs);
      // The loss of a channel is handled for all of its queries at once. Earlier copies do not count any more then.
      if (outcome === 'lost' || lostChannels !== query.lostChannels) return;
      if (outcome === 'confirmed') this.onConfirm(query, isStandby);
      error = notPublished(outcome);
      if (!error || !this.has(correlationId)) return;
      if (!isStandby) query.first = 'none';
      if (!isStandby && outcome === 'returned') this.setAway(query.operation.pattern, 'away', this.all());
      else if (!isStandby && outcome === 'nacked') this.onRefusal(query);
    } catch (notWritten) {
      error = unavailable((notWritten as Error).message);
    }
    if (--query.copies === 0) return this.fail(correlationId, error);
    if (!isStandby) return;
    Object.assign(query, { standby: 'failed', voidStandbyCopies: query.standbyCopies });
    this.watch(query);
  }

  private async publishStandby(query: Query, timeoutMs: number): Promise<PublishOutcome> {
    const { operation, standbyCopies } = query;
    const correlationId = query.correlationId + STANDBY_MARK.repeat(standbyCopies);
    const confirms =
      this.standbyConfirms.get(operation.pattern) ?? new QueueConfirms(() => this.giveUpStandby(operation.pattern));
    this.standbyConfirms.set(operation.pattern, confirms);
    if (confirms.isSilent) throw new NotWritten(SILENT);
    return confirms.during(() => this.transport.publish(this.standby!, query, correlationId, timeoutMs));
  }

  /** The standby queue is silent. Only what the first queue may have is waited for, and only while that one answers. */
  private giveUpStandby(pattern: string): void {
    if (this.transport.isWaiting()) return;
    const answeredAt = this.answeredAt.get(pattern) ?? -Infinity;
    const now = performance.now();
    for (const { operation, standby, first, askedAt, correlationId } of this.all()) {
      const hangs = first === 'none' ? standby !== 'none' : askedAt > answeredAt && askedAt < now - PATIENCE_MS;
      if (operation.pattern !== pattern || !hangs) continue;
      if (first !== 'none') this.awayUntil.set(pattern, now + AWAY_MS);
      this.fail(correlationId, unavailable(SILENT));
    }
  }

  /** Looks at the query when no answer has come. */
  private watch(query: Query): void {
    clearTimeout(query.timer);
    if (query.looks >= MOST_LOOKS) return;
    const waitMs = this.patienceMs(query.operation.pattern) * 2 ** query.looks;
    // After the poll phase: a busy process may have an answer in its socket that it has not read yet.
    query.timer = setTimeout(() => setImmediate(() => this.look(query)), waitMs).unref();
  }

  private look(query: Query): void {
    // A copy that the standby queue has not confirmed was delivered to no consumer.
    if (!this.has(query.correlationId) || query.standby === 'sent') return;
    query.looks++;
    if (!this.repetitions.take(query)) return this.watch(query);
    query.repetitions++;
    this.publishAgain(query, 'unanswered');
  }

  private take(correlationId: string): Query | undefined {
    const query = this.asked.take(correlationId);
    if (query) {
      clearTimeout(query.timer);
      this.repetitions.ended(query);
    }
    return query;
  }

  private patienceMs(pattern: string): number {
    const refusedAt = this.refusedAt.get(pattern) ?? -Infinity;
    return refusedAt > (this.answeredAt.get(pattern) ?? -Infinity) ? PATIENCE_AFTER_REFUSAL_MS : PATIENCE_MS;
  }

  /** The queue is full, or its node stops or starts. */
  private onRefusal(query: Query): void {
    this.refusedAt.set(query.operation.pattern, performance.now());
    this.repeat(query);
  }

  private onConfirm(query: Query, isStandby: boolean): void {
    if (!isStandby) return void (query.first = 'confirmed');
    query.standby = 'confirmed';
    if (!this.has(query.correlationId)) return;
    this.watch(query);
    // Confirms come over one connection. The later copy is confirmed, so the queue of the first copy hangs, and not the connection.
    if (query.first !== 'sent') return;
    const hanging = this.all().filter(({ first }) => first === 'sent');
    this.setAway(query.operation.pattern, 'unconfirmed', hanging);
  }

  private setAway(pattern: string, reason: RepetitionReason, queries: Query[]): void {
    if (this.standby === undefined) return;
    this.awayUntil.set(pattern, performance.now() + AWAY_MS);
    for (const query of queries) if (query.operation.pattern === pattern) this.repeat(query, reason);
  }

  private repeat(query: Query, reason: RepetitionReason = 'away'): void {
    if (this.standby !== undefined && query.standby === 'none') this.publishAgain(query, reason);
  }

  private publishAgain(query: Query, reason: RepetitionReason): void {
    this.transport.repeated(query.operation.pattern, reason);
    void this.send(query, true);
  }

  private fail(correlationId: string, error: Error): void {
    this.take(correlationId);
    this.transport.reject(correlationId, error);
  }

  private all(): Query[] {
    return this.asked.keys().flatMap((id) => this.asked.get(id) ?? []);
  }
}
