import { Agent, request } from 'node:http';
import type { ConfirmChannel } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { Changes, effectOf, effects, isAdded, OPERATIONS, undone } from './changes';
import { REQUEST_TIMEOUT_MS, type Cluster, type Gateway } from './cluster';
import { Journal, type Thing, type Answer } from './journal';
import { Noise } from './noise';
import type { Random } from './random';

/** Time from the deadline until an outcome is final, plus the way of a call to the gateway, whose clock starts later. */
const FINAL_AFTER_MS = 1000 + 250;
const GIVE_UP_MS = 60_000;
const MOST_AT_ONCE = 10;
/** Location of notifications that were published over AMQP and not sent over HTTP. */
const PUBLISHED = 'published';

export interface Answered {
  askedAt: number;
  answeredAt?: number;
  status?: number;
  /** Time of the answer, without the delay by the machine itself. */
  ms?: number;
}

/** The part of a system that a workload uses. */
export type UnderLoad = Pick<Cluster, 'tenants' | 'sql' | 'gatewayUrl' | 'waiting'> & { gateway: Pick<Gateway, 'url'> };

/** An open-loop client: it sends at its rate, with or without answers, and if wanted several requests at a time (`burst`). */
export class Workload {
  readonly journal = new Journal();
  /** The organization of this workload only. */
  readonly organizationId: string;
  readonly documentId = 'document';
  private readonly agent = new Agent({ keepAlive: true });
  private readonly noise: Noise;
  private readonly asked: Thing[] = [];
  private readonly changes: Changes;
  /** Things of {@link asked} that have no answer yet. */
  private readonly unanswered = new Set<string>();
  /** Things that are not sent again since they are changed, by the mark of the change. */
  private readonly changed = new Map<string, Thing>();
  private readonly running = new Set<Promise<void>>();
  private readonly settling = new Set<Promise<void>>();
  /** Prefix of the idempotency keys, which must differ between workloads. */
  private readonly keys: string;
  /** Requests whose outcome is unknown until `finalAt`. */
  private unknown: { ask: number; thing: Thing; finalAt: number; resolve: () => void }[] = [];
  private looking = false;
  private readonly looks = setInterval(() => void this.settleFinal(), 100).unref();
  private timer?: NodeJS.Timeout;
  private marks = 0;
  /** A counter for each tenant: both use the same ids, and must not see each other. */
  private readonly numbers: [number, number] = [0, 0];
  /** Requests in order, with their status once it is known. */
  readonly statuses: Answered[] = [];

  constructor(
    private readonly cluster: UnderLoad,
    private readonly random: Random,
    name: string,
    readonly ratePerSecond = 50,
    private readonly burst = 1,
    private readonly withChanges = true,
  ) {
    this.noise = new Noise(cluster);
    this.keys = random.word(16);
    this.organizationId = `${name} ${this.keys}`;
    this.changes = new Changes(random, this.organizationId);
  }

  start(): void {
    const start = performance.now();
    let due = 0;
    this.timer = setInterval(() => {
      const bursts = Math.floor(((performance.now() - start) * this.ratePerSecond) / 1000 / this.burst);
      const now = bursts * this.burst;
      // Requests missed on a busy machine are not made up: all at once they would be another fault.
      for (due = Math.max(due, now - Math.max(MOST_AT_ONCE, this.burst)); due < now; due++) void this.ask(this.nextThing());
    }, 5);
  }

  /** Stops sending, and waits for every answer and until every unknown outcome is final. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all(this.running);
    await Promise.all(this.settling);
    clearInterval(this.looks);
    this.noise.stop();
    this.agent.destroy();
  }

  count(status: number, since = 0): number {
    return this.statuses.filter((ask) => ask.status === status && ask.askedAt >= since).length;
  }

  /** Answers so far to requests since a time. */
  since(from: number): Answered[] {
    return this.statuses.filter(({ askedAt, status }) => askedAt >= from && status !== undefined);
  }

  /** Waits for `count` more answers of 200: a time that depends on the load and not on the clock. */
  async answers(count: number): Promise<void> {
    const before = this.count(200);
    await eventually(() => this.count(200) >= before + count, 30_000);
  }

  /** Waits until `count` more requests were sent, with any answer. */
  async asks(count: number): Promise<void> {
    const before = this.statuses.length;
    await eventually(() => this.statuses.length >= before + count, 30_000);
  }

  /**
   * Waits until `count` published commands have taken effect. Requests over HTTP do not count.
   *
   * @throws Error after 2 minutes, which is longer than the first three retries
   */
  async stored(count: number): Promise<void> {
    const sql = `SELECT count(*)::int AS count FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
                 WHERE o.organization_id = $1 AND n.location_id = $2`;
    const values = [this.organizationId, PUBLISHED];
    const stored = async () => (await this.cluster.sql.query<{ count: number }>(sql, values)).rows[0]?.count ?? 0;
    await eventually(async () => (await stored()) >= count, 120_000, 200).catch(async (cause: unknown) => {
      const retries = await this.cluster.waiting('retry');
      throw new Error(`${await stored()} of ${count} published commands are stored, ${retries} are to be tried again`, { cause });
    });
  }

  /** Sends one request, in addition to the rate. */
  ask(thing: Thing): Promise<Answer> {
    const number = this.journal.ask(thing);
    const entry: Answered = { askedAt: performance.now() };
    this.statuses.push(entry);
    const askedAt = Date.now();
    const answering = this.post(thing).then((answer) => ({ ...answer, noiseMs: this.noise.since(entry.askedAt) }));
    const work = answering.then((answer) => {
      this.journal.answer(number, answer);
      entry.status = answer.status;
      entry.answeredAt = performance.now();
      entry.ms = answer.ms - answer.noiseMs;
      this.note(thing, answer);
      if (![0, 500, 504].includes(answer.status)) return;
      const deadline = Math.max(askedAt + answer.noiseMs + REQUEST_TIMEOUT_MS, answer.status === 504 ? Date.now() : 0);
      const settled = this.settle(number, thing, deadline);
      this.track(this.settling, settled);
    });
    this.track(this.running, work);
    return work.then(() => answering);
  }

  /** Chooses what may be changed, and what is sent again. */
  private note(thing: Thing, { status, id }: Answer): void {
    if (status !== 200) return;
    if (this.unanswered.delete(thing.mark)) {
      const [user] = (thing.data.users ?? []) as { userId: string }[];
      this.changes.added(thing, user?.userId ?? id ?? '');
    }
    // A deleted notification must not come back.
    const deleted = this.changed.get(thing.mark);
    if (deleted && thing.kind === 'deletion') this.asked.push(deleted);
    this.changed.delete(thing.mark);
  }

  /** Publishes like another service, which waits only for the broker's confirm. From then on the command must take effect in the end. */
  publish(channel: ConfirmChannel, thing: Thing): Promise<void> {
    return this.publishBy(
      (body, properties) =>
        new Promise<void>((resolve, reject) => {
          channel.publish('commands', 'notifications.add.v1', body, { persistent: true, ...properties }, (error) =>
            error ? reject(error as Error) : resolve(),
          );
        }),
      thing,
    );
  }

  /** The same in another way: `send` resolves with the broker's confirm. */
  async publishBy(
    send: (body: Buffer, properties: { messageId: string; headers: Record<string, string | undefined> }) => Promise<void>,
    { data, ...others }: Thing,
  ): Promise<void> {
    const thing = { ...others, data: { ...data, locationId: PUBLISHED } };
    const number = this.journal.ask(thing);
    const messageId = `message ${thing.mark}`;
    const headers = {
      'x-api-key': this.cluster.tenants[thing.tenant]['x-svc-api-key'],
      ...(thing.idempotencyKey && { 'x-idempotency-key': thing.idempotencyKey }),
    };
    const body = Buffer.from(JSON.stringify(thing.data));
    await send(body, { messageId, headers });
    const id = (data.notificationId as string | undefined) ?? messageId;
    this.journal.answer(number, { status: 200, ms: 0, noiseMs: 0, id });
  }

  /** Mostly new notifications; also users, changes of both, and repetitions of earlier requests. */
  nextThing(): Thing {
    const { random } = this;
    const earlier = this.asked.length > 0 && random.chance(0.05) ? random.pick(this.asked.slice(-200)) : undefined;
    if (earlier) {
      this.changes.repeated(earlier);
      return earlier;
    }
    const change = this.withChanges && random.chance(0.08) ? this.changes.next() : undefined;
    if (change) {
      const at = this.asked.findIndex(({ mark }) => mark === change.of);
      for (const thing of at >= 0 ? this.asked.splice(at, 1) : []) this.changed.set(change.mark, thing);
      return change;
    }
    const tenant = random.chance(0.2) ? 1 : 0;
    const thing = random.chance(0.1) ? this.newUser(tenant) : this.newNotification(tenant);
    this.asked.push(thing);
    this.unanswered.add(thing.mark);
    return thing;
  }

  newNotification(tenant: 0 | 1 = 0, named = this.random.chance(0.7)): Thing {
    const { random, organizationId, documentId } = this;
    const { mark, number } = this.nextMark(tenant);
    return {
      kind: 'notification',
      tenant,
      mark,
      data: {
        organizationId,
        documentId,
        ...(named && { notificationId: `n${number}` }),
        actionUser: { userId: random.word(), name: random.word(random.between(1, 40)) },
        displayHeadlineMessageTemplate: mark,
        displayBodyMessage: random.word(random.between(1, 300)),
        ...(random.chance(0.5) && {
          notifyUsers: Array.from({ length: random.between(1, 4) }, (_, n) => ({ userId: `user ${n}` })),
        }),
      },
      // Without notificationId and idempotency key a repetition would be another notification.
      ...((!named || random.chance(0.2)) && { idempotencyKey: `${this.keys} ${number}` }),
    };
  }

  private newUser(tenant: 0 | 1): Thing {
    const { organizationId } = this;
    const { mark, number } = this.nextMark(tenant);
    return {
      kind: 'user',
      tenant,
      mark,
      data: { organizationId, users: [{ userId: `u${number}`, name: mark, email: `${number}@example.com` }] },
      ...(this.random.chance(0.3) && { idempotencyKey: `${this.keys} ${number}` }),
    };
  }

  private nextMark(tenant: 0 | 1): { mark: string; number: number } {
    const number = this.numbers[tenant];
    this.numbers[tenant] = number + 1;
    return { mark: `mark ${this.marks++} ${this.random.word(12)}`, number };
  }

  private post(thing: Thing): Promise<Omit<Answer, 'noiseMs'>> {
    const start = performance.now();
    const answer = (status: number, rest: Partial<Answer> = {}) => ({ status, ms: performance.now() - start, ...rest });
    const body = JSON.stringify({ data: thing.data });
    return new Promise((resolve) => {
      const call = request(`${this.cluster.gatewayUrl}/v1/${OPERATIONS[thing.kind]}`, {
        method: 'POST',
        agent: this.agent,
        timeout: GIVE_UP_MS,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...this.cluster.tenants[thing.tenant],
          ...(thing.idempotencyKey && { 'idempotency-key': thing.idempotencyKey }),
        },
      });
      call.on('timeout', () => call.destroy());
      call.on('error', () => resolve(answer(0)));
      call.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', () => resolve(answer(0)));
        response.on('end', () => {
          const status = response.statusCode ?? 0;
          const id = response.headers['x-notification-id'] as string | undefined;
          resolve(answer(status, { ...(id && { id }), ...problemsOf(thing, status, Buffer.concat(chunks).toString()) }));
        });
      });
      call.end(body);
    });
  }

  private settle(ask: number, thing: Thing, deadline: number): Promise<void> {
    return new Promise((resolve) => this.unknown.push({ ask, thing, finalAt: deadline + FINAL_AFTER_MS, resolve }));
  }

  /** Looks up all outcomes that have become final with one statement, because there may be hundreds at once. */
  private async settleFinal(): Promise<void> {
    const now = Date.now();
    const final = this.unknown.filter(({ finalAt }) => finalAt <= now);
    if (final.length === 0 || this.looking) return;
    this.looking = true;
    try {
      const things = final.map(({ thing }) => thing);
      const found = await this.found(things.filter(isAdded).map(({ mark }) => mark));
      const changed = things.every(isAdded) ? undefined : await effects(this.cluster, this.organizationId);
      for (const { ask, thing, resolve } of final) {
        const apiKey = this.cluster.tenants[thing.tenant]['x-svc-api-key'];
        this.journal.settle(ask, isAdded(thing) ? found.has(thing.mark) : changed?.has(effectOf(apiKey, thing)) === true);
        resolve();
      }
      this.unknown = this.unknown.filter((one) => !final.includes(one));
    } catch {
      // The database or the machine is busy: the next lookup will find them.
    } finally {
      this.looking = false;
    }
  }

  private async found(marks: string[]): Promise<Set<string>> {
    const { rows } = await this.cluster.sql.query<{ mark: string }>(
      `SELECT n.content ->> 'displayHeadlineMessageTemplate' AS mark
       FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
       WHERE o.organization_id = $1 AND n.content ->> 'displayHeadlineMessageTemplate' = ANY ($2)
       UNION ALL
       SELECT u.name FROM users.users u JOIN users.organizations o ON o.id = u.organization
       WHERE o.organization_id = $1 AND u.name = ANY ($2)`,
      [this.organizationId, marks],
    );
    return new Set(rows.map(({ mark }) => mark));
  }

  private track(set: Set<Promise<void>>, work: Promise<void>): void {
    set.add(work);
    void work.finally(() => set.delete(work));
  }
}

/** Reasons why an answer does not have the published form, or says that nothing was changed. */
function problemsOf(thing: Thing, status: number, text: string): Pick<Answer, 'error' | 'malformed' | 'undone'> {
  try {
    const { result, error } = JSON.parse(text) as { result?: { status?: string }; error?: { status?: string; message?: string } };
    if (status === 200 && result?.status === 'success' && error === undefined) {
      const reason = undone(thing, result);
      return reason ? { undone: reason } : {};
    }
    const isError = status !== 200 && typeof error?.status === 'string' && typeof error.message === 'string' && !result;
    return isError ? { error: error.message } : { malformed: text };
  } catch {
    return { malformed: `not JSON: ${text}` };
  }
}
