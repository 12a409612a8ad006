import { randomUUID } from 'node:crypto';
import { report } from '@app/testing/report';
import type { Cluster } from './cluster';
import { lasting } from './run-fault';

export interface Answer<Result> {
  /** 0: none arrived. */
  status: number;
  /** Of an answer of 200. */
  result?: Result;
}

/** Calls the API for a tenant, and counts the statuses. For tests of their own calls: a {@link Workload} keeps a rate and a journal. */
export class Caller {
  readonly statuses: number[] = [];

  constructor(private readonly cluster: Cluster) {}

  /** @param operation the path after `/v1/` */
  async once<Result>(operation: string, data: object, tenant = 0, key: string = randomUUID()): Promise<Answer<Result>> {
    const answer = await fetch(`${this.cluster.gatewayUrl}/v1/${operation}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.cluster.tenants[tenant], 'idempotency-key': key },
      body: JSON.stringify({ data }),
    }).then(
      async (response): Promise<Answer<Result>> => {
        const body = (await response.json()) as { result: Result };
        return { status: response.status, ...(response.status === 200 && { result: body.result }) };
      },
      () => ({ status: 0 }),
    );
    this.statuses.push(answer.status);
    return answer;
  }

  /** Repeats the call with the same key while its outcome is unknown or it was not executed, for a minute. */
  async untilDone<Result>(operation: string, data: object, tenant = 0): Promise<Result> {
    const key = randomUUID();
    const until = performance.now() + 60_000;
    for (;;) {
      const { status, result } = await this.once<Result>(operation, data, tenant, key);
      if (result) return result;
      if (![0, 503, 504].includes(status) || performance.now() > until) throw new Error(`${operation} was answered ${status}`);
      await lasting(50);
    }
  }

  /** Writes a line of the matrix, of a test that has found nothing wrong. */
  report(fault: string): void {
    const count = (status: number) => this.statuses.filter((one) => one === status).length;
    report({
      fault,
      asked: this.statuses.length,
      200: count(200),
      503: count(503),
      504: count(504),
      'no answer': count(0),
      lost: 0,
      duplicated: 0,
      unasked: 0,
      late: 0,
    });
  }
}
