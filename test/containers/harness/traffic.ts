import { randomBytes } from 'node:crypto';
import { keepCalling } from '@app/testing/system/keep-calling';
import { DEMO_HEADERS } from '@app/testing/system/system';
import { eventually } from '@app/testing/eventually';

const CLIENTS = 4;
const PER_SECOND = 40;
/** Longer than any answer takes: a call without an answer fails. */
const GIVE_UP_MS = 20_000;
const LOOK_EVERY_MS = 100;
/** The engine may accept a connection to a container that does not listen yet, and never answer it. */
const LOOK_MS = 2000;

export interface Answer {
  /** 0: no answer. */
  status: number;
  body: { result?: { status: string; data?: unknown; pageToken?: string }; error?: { message: string } };
}

/** Posts to an operation with the demo credentials. */
export async function post(baseUrl: string, operation: string, data: unknown): Promise<Answer> {
  try {
    const response = await fetch(`${baseUrl}/v1/${operation}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...DEMO_HEADERS },
      body: JSON.stringify({ data }),
      signal: AbortSignal.timeout(GIVE_UP_MS),
    });
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  } catch (error) {
    const { message, cause } = error as Error;
    return { status: 0, body: { error: { message: cause instanceof Error ? `${message}: ${cause.message}` : message } } };
  }
}

/** Adds and reads, through the gateways that are ready, and remembers each answer. */
export class Traffic {
  readonly failures: string[] = [];
  readonly acknowledged = new Set<string>();
  calls = 0;
  private ready: string[] = [];
  private turn = 0;
  private looks = 0;
  private newest = 0;
  private readonly place = { organizationId: `traffic ${randomBytes(6).toString('hex')}`, documentId: 'document' };
  private readonly timer = setInterval(() => void this.look(), LOOK_EVERY_MS).unref();
  private stopCalling: () => Promise<void> = async () => undefined;

  /** @param gateways base URL of the API and of health, of each gateway that there is */
  constructor(private readonly gateways: () => readonly { api: string; health: string }[]) {}

  async start(): Promise<void> {
    await eventually(() => this.ready.length > 0);
    this.stopCalling = keepCalling(CLIENTS, PER_SECOND, (client, number) => this.call(`${client}-${number}`, number % 3 === 2));
  }

  /** Until there are more answers: a time that depends on the load and not on the clock. */
  async more(answers = 60): Promise<void> {
    const until = this.calls + answers;
    await eventually(() => this.calls >= until);
  }

  async stop(): Promise<void> {
    await this.stopCalling();
    clearInterval(this.timer);
  }

  /** @returns ids with the answer 200 that cannot be read, and ids that are there twice */
  async missing(): Promise<{ lost: string[]; twice: string[] }> {
    const found: string[] = [];
    let pageToken: string | undefined;
    do {
      const answer = await post(this.ready[0], 'notifications/get', { ...this.place, ...(pageToken && { pageToken }) });
      if (answer.status !== 200) throw new Error(`The read-back failed: ${JSON.stringify(answer)}`);
      found.push(...(answer.body.result?.data as { id: string }[]).map(({ id }) => id));
      pageToken = answer.body.result?.pageToken;
    } while (pageToken);
    const there = new Set(found);
    return {
      lost: [...this.acknowledged].filter((id) => !there.has(id)),
      twice: found.filter((id, index) => found.indexOf(id) !== index),
    };
  }

  private async call(id: string, reads: boolean): Promise<void> {
    const gateway = this.ready[this.turn++ % this.ready.length];
    const add = {
      ...this.place,
      notificationId: id,
      actionUser: { userId: 'actor' },
      displayHeadlineMessageTemplate: 'Hello',
      notifyUsers: [{ userId: 'reader' }],
    };
    const { status, body } = reads
      ? await post(gateway, 'notifications/get', { ...this.place, pageSize: 10 })
      : await post(gateway, 'notifications/add', add);
    this.calls++;
    if (status !== 200) this.failures.push(`${status} ${reads ? 'get' : 'add'} ${body.error?.message}`);
    else if (!reads) this.acknowledged.add(id);
  }

  /** As a load balancer does. */
  private async look(): Promise<void> {
    const look = ++this.looks;
    const answers = await Promise.all(
      this.gateways().map(async ({ api, health }) =>
        fetch(`${health}/health/ready`, { signal: AbortSignal.timeout(LOOK_MS) }).then(
          ({ ok }) => (ok ? [api] : []),
          () => [],
        ),
      ),
    );
    // An earlier look may end later, and knows less.
    if (look < this.newest) return;
    this.newest = look;
    this.ready = answers.flat();
  }
}
