import type { Span } from '@opentelemetry/api';
import { STATEMENT_TIMEOUT_MS } from '@app/postgres/connections/statement-timeout';
import { LightWork } from '@app/runtime/light-work';
import type { NewNotification } from '../db/insert-notifications.repository';
import { MAX_BATCH } from '../metrics';
import type { Written } from './written';

export interface Entry {
  notification: NewNotification;
  tries: number;
  /** The span of its command. */
  span?: Span;
  resolve(written: Written): void;
  reject(error: unknown): void;
}

/** Leaders are inserted. Followers are only looked up. */
export interface Batch {
  leaders: Entry[];
  followers: Entry[];
}

/** Most recipients in a batch: they stay well below the statement timeout. */
const MAX_BATCH_RECIPIENTS = 10_000;

/** Most recipients in a batch with a near deadline, whose statement has less time. */
const MAX_HURRIED_RECIPIENTS = 2000;

/**
 * The same beside usual notifications of other API keys. These share a statement with notifications of nearly a hundred recipients, or wait for one
 * with more because it stores the same id, organization or document. The consumer takes such notifications for light when their bodies are small.
 */
const MAX_RECIPIENTS_BESIDE = 500;

/** A notification with this number of recipients takes longer than a usual batch. */
const HEAVY_RECIPIENTS = 100;

/** A lane has 64 light commands in flight, or 8 with 100 recipients, and half of them must be enough. */
const WORTH_A_SECOND = { notifications: 32, recipients: 300 };

/**
 * Notifications that may share a statement, and so its time and its failure. A statement takes as long as its most expensive notification, and has
 * the time that its nearest deadline leaves. Both are the choice of one caller, so what is heavy or has a near deadline never shares a
 * statement with the others.
 */
export class WriteQueue {
  waiting: Entry[] = [];
  /** Batches being written. */
  writing = 0;
  /** The newest of these has not taken its notifications yet. */
  collecting = false;

  /** @param isBeside whether usual notifications of other API keys came just before */
  constructor(private readonly isBeside: (apiKey: string) => boolean) {}

  /** Whether what waits is worth a statement and a commit beside those that are being written. */
  get isWorthASecond(): boolean {
    const { notifications, recipients } = WORTH_A_SECOND;
    return this.waiting.length >= notifications || recipientsOf(this.waiting) >= recipients;
  }

  /**
   * Leaders have distinct ids. Followers repeat the id of a leader and share its outcome, or their deadline has passed. A notification whose
   * Idempotency-Key is being written waits for that answer, so that a batch has each key once. A batch beside no other leaves half of many for the
   * next: when everything that may be in flight waits already, nothing else will come for it.
   * API keys take turns: one with many notifications, or with many recipients, must not delay the others by several batches.
   *
   * @param alone whether nothing else of the queue is being written
   * @param keysBeingWritten those of the batch are added
   */
  take(alone: boolean, keysBeingWritten: Set<string | undefined>): Batch {
    const leaders = new Map<string, Entry>();
    const followers: Entry[] = [];
    const rest: Entry[] = [];
    let recipients = 0;
    let isFull = false;
    const halves = alone && this.isWorthASecond;
    const most = halves ? Math.min(MAX_BATCH, Math.ceil(this.waiting.length / 2)) : MAX_BATCH;
    let mostRecipients = halves ? Math.min(this.mostRecipients, recipientsOf(this.waiting) / 2) : this.mostRecipients;
    for (const entry of inTurns(this.waiting)) {
      const idempotencyKey = idempotencyKeyOf(entry);
      if (isFull || keysBeingWritten.has(idempotencyKey)) {
        rest.push(entry);
        continue;
      }
      const left = timeLeft(entry.notification);
      if (left >= 0 && left < STATEMENT_TIMEOUT_MS) mostRecipients = Math.min(mostRecipients, MAX_HURRIED_RECIPIENTS);
      recipients += entry.notification.content.notifyUsers.length;
      const taken = leaders.size + followers.length;
      isFull = taken > 0 && (taken >= most || recipients > mostRecipients);
      if (isFull) {
        rest.push(entry);
        continue;
      }
      const identity = identityOf(entry);
      if (leaders.has(identity) || left < 0) followers.push(entry);
      else leaders.set(identity, entry);
      if (idempotencyKey) keysBeingWritten.add(idempotencyKey);
    }
    this.waiting = rest;
    const sorted = [...leaders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
    return { leaders: sorted, followers };
  }

  private get mostRecipients(): number {
    const isBeside = this.waiting.some(({ notification: { apiKey } }) => this.isBeside(apiKey));
    return isBeside ? MAX_RECIPIENTS_BESIDE : MAX_BATCH_RECIPIENTS;
  }
}

/** The queues of one writer. */
export class WriteQueues {
  private readonly lightWork = new LightWork();
  private readonly usual = this.newQueue();
  private readonly hurried = this.newQueue();
  private readonly heavy = this.newQueue();
  private readonly heavyAndHurried = this.newQueue();
  readonly all: readonly WriteQueue[] = [this.usual, this.hurried, this.heavy, this.heavyAndHurried];

  /** The queue of a notification that has just come. */
  of(notification: NewNotification): WriteQueue {
    const isHurried = timeLeft(notification) < STATEMENT_TIMEOUT_MS;
    if (notification.content.notifyUsers.length >= HEAVY_RECIPIENTS) return isHurried ? this.heavyAndHurried : this.heavy;
    this.lightWork.started(notification.apiKey, performance.now());
    return isHurried ? this.hurried : this.usual;
  }

  get waiting(): number {
    return this.all.reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  private newQueue(): WriteQueue {
    return new WriteQueue((apiKey) => this.lightWork.isBeside(apiKey, performance.now()));
  }
}

export const idempotencyKeyOf = ({ notification: { apiKey, idempotency } }: Entry): string | undefined =>
  idempotency && JSON.stringify([apiKey, idempotency.key]);

const timeLeft = ({ deadline = Infinity }: NewNotification): number => deadline - Date.now();

const recipientsOf = (entries: readonly Entry[]): number =>
  entries.reduce((sum, { notification }) => sum + notification.content.notifyUsers.length, 0);

/** The first of each API key, then the second of each, and so on. */
function inTurns(entries: Entry[]): Entry[] {
  const byKey = new Map<string, Entry[]>();
  for (const entry of entries) {
    const { apiKey } = entry.notification;
    const ofKey = byKey.get(apiKey);
    if (ofKey) ofKey.push(entry);
    else byKey.set(apiKey, [entry]);
  }
  if (byKey.size <= 1) return entries;
  const keys = [...byKey.values()];
  const turns = Math.max(...keys.map(({ length }) => length));
  return Array.from({ length: turns }, (_, turn) => keys.flatMap((ofKey) => ofKey[turn] ?? [])).flat();
}

const identityOf = ({ notification: { apiKey, organizationId, id } }: Entry): string =>
  JSON.stringify([apiKey, organizationId, id]);
