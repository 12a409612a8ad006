import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@app/testing/eventually';
import type { Cluster } from '../faults/harness/cluster';

const PACE_MS = 200;
/** The system is calm after this number of good answers in a row, each within this time. */
const CALM = { answers: 50, milliseconds: 250 };

/** Callers that add and read notifications, and now and then add users. Their answers do not matter, only their traces in the metrics. */
export class Load {
  readonly usual = 6;
  workers = this.usual;
  private readonly running: Promise<void>[] = [];
  private over = false;
  private number = 0;
  private good = 0;

  constructor(private readonly cluster: Cluster) {
    for (let worker = 0; worker < 80; worker++) this.running.push(this.run(worker));
  }

  /** Resolves when the system has answered well for a while. */
  async calm(): Promise<void> {
    this.good = 0;
    await eventually(() => this.good >= CALM.answers, 120_000, 100);
  }

  async stop(): Promise<void> {
    this.over = true;
    await Promise.all(this.running);
  }

  private async run(worker: number): Promise<void> {
    while (!this.over) {
      await sleep(PACE_MS);
      if (worker < this.workers) await this.call();
    }
  }

  private async call(): Promise<void> {
    const number = this.number++;
    const [operation, data] = this.next(number);
    const since = performance.now();
    const status = await fetch(`${this.cluster.gatewayUrl}/v1/${operation}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.cluster.tenants[0] },
      body: JSON.stringify({ data: { organizationId: 'org', ...data } }),
    })
      .then((response) => response.arrayBuffer().then(() => response.status))
      .catch(() => 0);
    this.good = status === 200 && performance.now() - since < CALM.milliseconds ? this.good + 1 : 0;
  }

  private next(number: number): [string, object] {
    if (number % 5 === 0) return ['users/add', { users: [{ userId: `user ${number}` }] }];
    if (number % 5 < 3) return ['notifications/get', { userId: 'reader', pageSize: 5 }];
    const content = { actionUser: { userId: 'actor' }, displayHeadlineMessageTemplate: 'Hello' };
    return ['notifications/add', { documentId: 'doc', notifyUsers: [{ userId: 'reader' }], ...content }];
  }
}
