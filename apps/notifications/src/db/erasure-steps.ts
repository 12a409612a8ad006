import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { jsonTexts } from '@app/postgres/json-texts';
import type { ErasureSteps, StepOutcome } from '@app/postgres/retention/erasure-loop';
import { StepSizes } from '@app/postgres/retention/step-sizes';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { changesOf, type Hit } from './erased-content';
import * as sql from './erasure.sql';
import { UNDER_WAY_MS } from './outbox.repository';
import { SETTLED } from './readings.sql';

/** Organizations of one step, and pairs of an organization and a user. */
const MOST_ORGANIZATIONS = 50;
const MOST_PAIRS = 2000;
/** First, least and most notifications that one step looks through. */
const [FIRST, LEAST, MOST] = [256, 64, 20_000];
/**
 * Most bytes of them, and bytes for each of their number: all may name the users, and are then in memory several times and rewritten by one
 * statement.
 */
const MOST_BYTES = 8 * 1024 * 1024;
const BYTES_OF_EACH = 16 * 1024;

/**
 * Time from the last changed notification to the end, in milliseconds: a relay may be publishing what it has read before that. An answer of the users
 * service may be stored until 4 s after its question.
 */
const SETTLE_MS = UNDER_WAY_MS;

interface Erasure {
  id: string;
  api_key: string;
  user_ids: string[];
  organization_ids: string[] | null;
  version: string;
  up_to: string;
  received_at: Date;
  stage: 'people' | 'notifications' | 'people again';
  at_organization: string;
  at_notification: string | null;
}

/** An erasure that is complete, and its event. */
interface Complete {
  erasure: Erasure;
  event: OutboxEvent;
}

interface Organization {
  name: string;
  /** null: not known here. */
  id: string | null;
}

interface Found {
  rows: number;
  bytes: number;
  last: string | null;
  more: boolean;
  hits: Hit[];
}

/**
 * Erasures of this service in three stages: read state and memberships (`people`), the contents of all notifications, and after a wait once more
 * what a late event or answer has brought back (`people again`). Then the event `user.data-deleted.v1` says that nothing is left.
 */
export class NotificationsErasureSteps implements ErasureSteps {
  private readonly logger = new Logger('Erasure');
  private readonly sizes = new StepSizes(FIRST, LEAST, MOST);
  /** API key of the last step: API keys take turns. */
  private lastKey = '';

  /** @param publish called with an event that was committed, and `performance.now()` before that */
  constructor(
    private readonly dataSource: DataSource,
    private readonly publish: (event: OutboxEvent, since: number) => void,
    private readonly settleMs = SETTLE_MS,
  ) {}

  async step(): Promise<StepOutcome> {
    const since = performance.now();
    try {
      const { outcome, complete } = await this.dataSource.transaction((manager) => this.stepOf(manager));
      if (complete) this.report(complete, since);
      if (outcome === 'done') this.sizes.took(this.lastKey, performance.now() - since);
      return outcome;
    } catch (error) {
      this.sizes.took(this.lastKey, Infinity);
      throw error;
    }
  }

  async oldestSeconds(): Promise<number> {
    const [found] = await this.dataSource.query<{ seconds: number }[]>(sql.OLDEST);
    return found?.seconds ?? 0;
  }

  private async stepOf(manager: EntityManager): Promise<{ outcome: StepOutcome; complete?: Complete }> {
    const erasure = await this.take(manager);
    if (!erasure) return { outcome: (await this.hasOthers(manager)) ? 'waiting' : 'idle' };
    this.lastKey = erasure.api_key;
    if (erasure.stage === 'notifications') await this.lookThrough(manager, erasure);
    else if (!(await deletePeople(manager, erasure))) {
      if (erasure.stage === 'people again') return { outcome: 'done', complete: await complete(manager, erasure) };
      await manager.query(sql.MOVE, [erasure.id, 'notifications', '', null]);
    }
    return { outcome: 'done' };
  }

  private async take(manager: EntityManager): Promise<Erasure | undefined> {
    // A statement of its own: the next one sees everything up to this moment.
    const [{ settled }] = await manager.query<[{ settled: string }]>(SETTLED.text);
    const after = (key: string) => manager.query<Erasure[]>(sql.TAKE, [this.settleMs, settled, key]);
    return (await after(this.lastKey))[0] ?? (await after(''))[0];
  }

  /** Whether there are erasures that wait, or that another process works on. */
  private async hasOthers(manager: EntityManager): Promise<boolean> {
    const [found] = await manager.query<{ seconds: number }[]>(sql.OLDEST);
    return found !== undefined && found.seconds > 0;
  }

  private async lookThrough(manager: EntityManager, erasure: Erasure): Promise<void> {
    const isOpen = erasure.at_notification !== null;
    const most = this.sizes.of(erasure.api_key);
    let left = { rows: most, bytes: Math.min(MOST_BYTES, most * BYTES_OF_EACH) };
    let position: [organization: string, notification: string | null] | undefined;
    for (const { name, id } of await nextOrganizations(manager, erasure, MOST_ORGANIZATIONS, isOpen)) {
      const after = isOpen && name === erasure.at_organization ? erasure.at_notification : '';
      const found = id === null ? undefined : await lookAt(manager, erasure, id, after ?? '', left);
      // A notification that has just changed is looked at again.
      if (found === 'changed') break;
      position = [name, found?.more ? found.last : null];
      if (found) left = { rows: left.rows - found.rows, bytes: left.bytes - found.bytes };
      if (found?.more || left.rows <= 0 || left.bytes <= 0) break;
    }
    if (position) await manager.query(sql.MOVE, [erasure.id, erasure.stage, ...position]);
    else if ((await nextOrganizations(manager, erasure, 1, isOpen)).length === 0) await manager.query(sql.END_WALK, [erasure.id]);
  }

  /** After the commit: the line is what an operator goes by after a restore. */
  private report({ erasure, event }: Complete, since: number): void {
    this.publish(event, since);
    const seconds = Math.round((Date.now() - erasure.received_at.getTime()) / 1000);
    this.logger.log({ msg: 'an erasure is complete', erasure: erasure.id, users: erasure.user_ids.length, seconds });
  }
}

async function complete(manager: EntityManager, erasure: Erasure): Promise<Complete> {
  const { id: erasureId, api_key: apiKey, user_ids: userIds, organization_ids: organizationIds } = erasure;
  const [id, type] = [randomUUID(), EVENT_TYPES.userDataDeleted];
  const data = JSON.stringify({ userIds, ...(organizationIds && { organizationIds }) });
  const [{ seq, occurred_at: occurredAt }] = await manager.query<[{ seq: string; occurred_at: Date }]>(sql.COMPLETE, [
    erasureId,
    apiKey,
    id,
    type,
    data,
  ]);
  return { erasure, event: { seq, id, type, apiKey, organizationId: apiKey, occurredAt, data } };
}

async function nextOrganizations(
  manager: EntityManager,
  { api_key: apiKey, organization_ids: organizationIds, at_organization: at }: Erasure,
  most: number,
  isOpen = false,
): Promise<Organization[]> {
  return manager.query(sql.NEXT_ORGANIZATIONS, [apiKey, organizationIds, at, isOpen, most]);
}

/** @returns false when no organization is left */
async function deletePeople(manager: EntityManager, erasure: Erasure): Promise<boolean> {
  const { id, stage, user_ids: userIds, up_to: upTo, version } = erasure;
  const organizations = await nextOrganizations(manager, erasure, Math.ceil(MOST_PAIRS / userIds.length));
  const last = organizations.at(-1);
  if (!last) return false;
  const known = organizations.flatMap((organization) => organization.id ?? []);
  const [{ more }] = await manager.query<[{ more: boolean }]>(sql.DELETE_PEOPLE, [known, userIds, upTo, version]);
  if (!more) await manager.query(sql.MOVE, [id, stage, last.name, null]);
  return true;
}

/** Looks through notifications of one organization and rewrites those that name the users. */
async function lookAt(
  manager: EntityManager,
  { user_ids: userIds, up_to: upTo }: Erasure,
  organization: string,
  after: string,
  { rows, bytes }: { rows: number; bytes: number },
): Promise<Found | 'changed'> {
  const { strings, words } = sql.soughtIn(userIds);
  const [found] = await manager.query<[Found]>(sql.FIND_NOTIFICATIONS, [organization, after, rows, bytes, strings, upTo, words]);
  const changes = await changesOf(found.hits, new Set(userIds));
  if (changes.length === 0) return found;
  const [{ count }] = await manager.query<[{ count: number }]>(sql.REWRITE_NOTIFICATIONS, [
    organization,
    changes.map(({ id }) => id),
    jsonTexts(changes.map(({ content }) => content)),
    jsonTexts(changes.map(({ next }) => next)),
    userIds,
  ]);
  return count === changes.length ? found : 'changed';
}
