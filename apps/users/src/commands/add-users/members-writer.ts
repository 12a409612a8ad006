import { setImmediate as immediate } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import type { Span } from '@opentelemetry/api';
import { STATEMENT_TIMEOUT_MS } from '@app/postgres/connections/statement-timeout';
import { isDatabaseAway, reasonOf } from '@app/postgres/errors';
import { startBatch } from '@app/tracing/batch-span';
import { outside, runIn } from '@app/tracing/tracing';
import { MembersRepository, type AddedMembers, type NewMembers } from '../../db/members.repository';
import { batchSize } from '../../metrics';
import { mergedUsers } from './user-entries';

/** A call with more users is worth a statement of its own. */
const MOST_OF_CALL = 10;

/** Most users of several calls in a statement: it takes a few milliseconds. */
const MOST_USERS = 100;

/** Most statements of a level at once. The process works for one while PostgreSQL works for the other. */
const MAX_WRITING = 2;

interface Call {
  members: NewMembers;
  /** The span of its command. */
  span?: Span;
  resolve: (added: AddedMembers) => void;
  reject: (error: unknown) => void;
}

/** Calls for one level of an organization. */
interface Queue {
  waiting: Call[];
  /** Statements under way, without those of calls that are tried alone after a shared one. */
  writing: number;
  /** The newest of these has not taken its calls yet. */
  collecting: boolean;
  /** Users of all statements under way. A second one with the same user would wait for the first, and everything with it. */
  users: Set<string>;
}

/**
 * Group commit: calls with few users for the same level gather while a statement runs, and share the next one, its commit and its event. Alone a
 * call is written at once. Together they have the outcome that they would have one after the other. The consumer's prefetch limits the calls.
 */
@Injectable()
export class MembersWriter {
  private readonly logger = new Logger(MembersWriter.name);
  private readonly queues = new Map<string, Queue>();

  constructor(private readonly repository: MembersRepository) {}

  /**
   * @returns the outcome, once it is committed
   * @throws the driver's error
   */
  async add(members: NewMembers, span?: Span): Promise<AddedMembers> {
    const { apiKey, organizationId, level, users, idempotency } = members;
    if (idempotency || users.length > MOST_OF_CALL || isHurried(members)) return this.repository.add(members);
    const name = JSON.stringify([apiKey, organizationId, level]);
    const queue = this.queues.get(name) ?? { waiting: [], writing: 0, collecting: false, users: new Set() };
    this.queues.set(name, queue);
    return new Promise((resolve, reject) => {
      queue.waiting.push({ members, span, resolve, reject });
      if (mayWrite(queue)) void outside(() => this.writeNext(name, queue));
    });
  }

  private async writeNext(name: string, queue: Queue): Promise<void> {
    queue.writing++;
    queue.collecting = true;
    // Deliveries of one network packet reach add() in the same turn of the event loop: wait for all of them.
    await immediate();
    queue.collecting = false;
    const calls = this.take(queue);
    const userIds = calls.flatMap(userIdsOf);
    for (const userId of userIds) queue.users.add(userId);
    let left: Call[] = [];
    if (calls.length > 0) {
      if (mayWrite(queue)) void this.writeNext(name, queue);
      batchSize.observe(calls.length);
      if (calls.length > 1) left = await this.writeTogether(calls);
      else await this.writeEach(calls);
    }
    queue.writing--;
    if (left.length > 0) {
      // These keep their users, and leave their place to others.
      if (mayWrite(queue)) void this.writeNext(name, queue);
      await this.writeEach(left);
    }
    for (const userId of userIds) queue.users.delete(userId);
    // Without calls of its own it would find none now either: they wait for the users of another statement.
    if (calls.length > 0 && mayWrite(queue)) void this.writeNext(name, queue);
    if (queue.writing === 0 && queue.users.size === 0 && queue.waiting.length === 0) this.queues.delete(name);
  }

  /** The calls of the next statement. Calls whose deadline has come near meanwhile do not wait for one any longer. */
  private take(queue: Queue): Call[] {
    const taken: Call[] = [];
    const rest: Call[] = [];
    // A call that stays behind keeps its users: a later call for one of them does not overtake it.
    const kept = new Set(queue.users);
    let users = 0;
    for (const call of queue.waiting) {
      const userIds = userIdsOf(call);
      if (isHurried(call.members)) void this.writeEach([call]);
      else if (users + userIds.length > MOST_USERS || userIds.some((userId) => kept.has(userId))) {
        rest.push(call);
        for (const userId of userIds) kept.add(userId);
      } else {
        taken.push(call);
        users += userIds.length;
      }
    }
    queue.waiting = rest;
    return taken;
  }

  /** @returns the calls that are to be tried alone, because nothing was stored: a value or a lock of one call must not fail the others */
  private async writeTogether(calls: Call[]): Promise<Call[]> {
    const span = startBatch('store users', calls);
    try {
      const written = await runIn(span, () => this.repository.add(together(calls)));
      if (written.outcome !== 'stored') return calls;
      resolveAll(calls, written.added);
      return [];
    } catch (error) {
      // The outcome is unknown, and nothing else would succeed now.
      if (isDatabaseAway(error)) {
        for (const { reject } of calls) reject(error);
        return [];
      }
      this.logger.warn({ msg: 'a batch was rolled back', calls: calls.length, reason: reasonOf(error) });
      return calls;
    } finally {
      span?.end();
    }
  }

  private async writeEach(calls: readonly Call[]): Promise<void> {
    await Promise.all(
      calls.map(({ members, span, resolve, reject }) => runIn(span, () => this.repository.add(members)).then(resolve, reject)),
    );
  }
}

const userIdsOf = ({ members }: Call): string[] => members.users.map(({ userId }) => userId);

function mayWrite({ waiting, writing, collecting }: Queue): boolean {
  return !collecting && writing < MAX_WRITING && waiting.length > 0;
}

/** A statement has the time that its nearest deadline leaves, which is the choice of one caller. */
const isHurried = ({ deadline = Infinity }: NewMembers): boolean => deadline - Date.now() < STATEMENT_TIMEOUT_MS;

function together(calls: readonly Call[]): NewMembers {
  const members = calls.map((call) => call.members);
  const deadline = Math.min(...members.map((one) => one.deadline ?? Infinity));
  return {
    ...members[0],
    users: mergedUsers(members.flatMap(({ users }) => users)),
    deadline: Number.isFinite(deadline) ? deadline : undefined,
  };
}

/** @param added users who were not at that level before: the first call that names one has added it */
function resolveAll(calls: readonly Call[], added: readonly string[]): void {
  const left = new Set(added);
  for (const { members, resolve } of calls)
    resolve({ outcome: 'stored', added: members.users.flatMap(({ userId }) => (left.delete(userId) ? userId : [])) });
}
