import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { within } from '@app/runtime/within';
import { ApiError } from '@app/contracts/error';
import { ListMemberships, MEMBERSHIPS_PAGE } from '@app/contracts/memberships.list';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { countLookup } from '@app/runtime/metrics';
import { askUsers } from './ask-users';
import { partOf } from './members-part';
import { MembersRepository, type CopiedMembership } from '../db/members.repository';

/** Milliseconds during which reads may still use a copy after it was marked as not trusted. */
export const TRUST_MS = 5000;

/**
 * Milliseconds in which all parts of a user are fetched, over several reads, or it begins anew: the first of them must not be from before the copy
 * was marked as not trusted.
 */
export const FETCH_MS = 15_000;

/**
 * Longest time from a question until its answer is about to be stored, in milliseconds. A process that stood still meanwhile must not bring back what was
 * erased: an erasure ends 10 s after it.
 */
const ANSWER_MS = 4000;

/** Longest wait of one read. */
const READ_MS = 2000;
/** Part of the time until its deadline. A read keeps the rest for its own statement and its answer. */
const WAITING = 0.8;
const MAX_FETCHES = 10_000;
/** Parts at work in a process, of all users and of one API key. A part goes on when the reads that wanted it are over: these bound its statements. */
export const MOST_PARTS = { ofAll: 32, ofKey: 16 };
/** Questions of a read that take longer are expected of the next reads of its tenant, too. Beside heavy work of others they take some 60 ms. */
const SHORT_MS = 250;
/** Time that a read must have left for a part to begin. */
const LEAST_MS = 50;

/**
 * A question to the users service costs a read as much as looking at so many rows: two more statements here, one there, and two messages. Four such
 * reads of a tenant are at work in a process beside light work of others.
 */
export const ROWS_OF_QUESTION = 4000;

/** of nobody: the user has never been added. */
type Outcome = 'more' | 'complete' | 'ofNobody';

/** Fetches the memberships of a user, in parts of bounded size. One part at a time, whoever reads. */
interface Fetch {
  readonly since: number;
  after?: CopiedMembership;
  part?: { readonly since: number; rows: number; readonly outcome: Promise<Outcome> };
}

/** Memberships of users. Events keep the copy current; the memberships of a user who is not copied yet are fetched from the users service. */
@Injectable()
export class Members {
  // Each addition and each removal arrives as an event. So a complete user stays complete until the copy is rebuilt.
  private readonly complete = new LRUCache<string, true>({ max: 100_000, ttl: TRUST_MS });
  /** Public for tests. */
  fetchMs = FETCH_MS;
  answerMs = ANSWER_MS;
  shortMs = SHORT_MS;
  private readonly fetches = new LRUCache<string, Fetch>({ max: MAX_FETCHES });
  /** Parts at work, with their API keys. */
  private readonly atWork = new Map<Promise<unknown>, string>();

  constructor(
    private readonly members: MembersRepository,
    private readonly client: RabbitClient,
  ) {}

  /**
   * Makes sure that all memberships of a user are copied, so that a caller who has added a user sees it in the next read, before the event arrives.
   *
   * @throws ApiError UNAVAILABLE when the users service does not answer, or when the user has more memberships than can be fetched in time: the next
   *   read goes on
   */
  async requireComplete(organizationId: string, userId: string, context: DeliveryContext): Promise<void> {
    const { apiKey, deadline } = context;
    const key = JSON.stringify([apiKey, organizationId, userId]);
    if (countLookup('members', this.complete.has(key))) return;
    const since = performance.now();
    const leftMs = deadline === undefined ? READ_MS : Math.min(READ_MS, WAITING * (deadline - Date.now()));
    const { complete, matters } = await this.members.find(apiKey, organizationId, userId);
    if (complete) this.complete.set(key, true);
    if (complete || !matters) return;
    try {
      for (let outcome: Outcome = 'more'; outcome === 'more';)
        outcome = await this.nextPart(key, { organizationId, userId }, context, { since, until: since + leftMs });
    } finally {
      // Other reads of the tenant stay light: those of users who are known. Long ones would take the places of all tenants as light work.
      if (performance.now() - since < this.shortMs) context.oneTimeRows = context.rows;
    }
  }

  /** @param since nobody is sure of an answer that may be older, unless memberships were found */
  private async nextPart(
    key: string,
    user: { organizationId: string; userId: string },
    context: DeliveryContext,
    { since, until }: { since: number; until: number },
  ): Promise<Outcome> {
    let fetch = this.fetches.get(key);
    if (!fetch || this.isOld(fetch)) this.fetches.set(key, (fetch = { since: performance.now() }));
    const leftMs = () => until - performance.now();
    while (!fetch.part && leftMs() >= LEAST_MS && this.isFull(context.apiKey))
      await within(leftMs(), Promise.race(this.atWork.keys()));
    if (!fetch.part && leftMs() >= LEAST_MS && !this.isFull(context.apiKey)) this.begin(fetch, key, user, context);
    const { part } = fetch;
    if (!part) {
      // It has held a place meanwhile.
      context.rows = (context.rows ?? 0) + ROWS_OF_QUESTION;
      throw notInTime();
    }
    const isEarlier = part.since < since;
    let outcome: Outcome;
    try {
      if (!(await within(Math.max(0, leftMs()), part.outcome))) throw notInTime();
      outcome = await part.outcome.catch((error: unknown) => {
        if (!isEarlier) throw error;
        return 'more' as const;
      });
    } finally {
      // A read that waits for the question of another one holds a place as long.
      context.rows = (context.rows ?? 0) + part.rows;
    }
    return isEarlier && outcome === 'ofNobody' ? 'more' : outcome;
  }

  private begin(fetch: Fetch, key: string, user: { organizationId: string; userId: string }, context: DeliveryContext): void {
    const part = { since: performance.now(), rows: ROWS_OF_QUESTION, outcome: Promise.resolve<Outcome>('more') };
    part.outcome = this.fetch(fetch, user, context, (rows) => (part.rows += rows))
      .then((outcome) => {
        if (outcome === 'complete') this.complete.set(key, true);
        if (outcome !== 'more' && this.fetches.get(key) === fetch) this.fetches.delete(key);
        return outcome;
      })
      .finally(() => {
        fetch.part = undefined;
        this.atWork.delete(ended);
      });
    const ended = part.outcome.catch(() => undefined);
    this.atWork.set(ended, context.apiKey);
    fetch.part = part;
  }

  private isFull(apiKey: string): boolean {
    if (this.atWork.size >= MOST_PARTS.ofAll) return true;
    let ofKey = 0;
    for (const one of this.atWork.values()) if (one === apiKey) ofKey++;
    return ofKey >= MOST_PARTS.ofKey;
  }

  /** Fetches and copies the next part. */
  private async fetch(
    fetch: Fetch,
    { organizationId, userId }: { organizationId: string; userId: string },
    context: DeliveryContext,
    looked: (rows: number) => void,
  ): Promise<Outcome> {
    const { apiKey } = context;
    const { after } = fetch;
    // Read before the question: a membership copied by then and missing in the answer is wrong. A later one may come from an event.
    const known = await this.members.known(apiKey, organizationId, userId, { after, most: MEMBERSHIPS_PAGE });
    const request = { organizationId, userId, ...(after && { afterLevel: after.level, afterId: after.id }) };
    const asked = performance.now();
    const answer = await askUsers(this.client, ListMemberships, request, context);
    looked(known.length + answer.memberships.length);
    const { end, ...part } = partOf(known, answer, MEMBERSHIPS_PAGE);
    const isEmpty = known.length === 0 && answer.memberships.length === 0 && answer.left === undefined;
    // The next read asks again. Memberships of earlier parts are copied.
    if (!end && isEmpty && !(await this.members.isKnown(apiKey, organizationId, userId))) return 'ofNobody';
    if (performance.now() - asked > this.answerMs) throw notInTime();
    const isComplete = !end && !this.isOld(fetch);
    await this.members.complete(apiKey, organizationId, userId, { ...part, more: !isComplete });
    fetch.after = end;
    return isComplete ? 'complete' : 'more';
  }

  private isOld({ since }: Fetch): boolean {
    return performance.now() - since > this.fetchMs;
  }
}

const notInTime = () => new ApiError('UNAVAILABLE', 'Not all memberships of the user are known yet.');
