import { randomUUID } from 'node:crypto';
import { patternOf, type Operation } from '@app/testing/system/system';
import type { Tally } from './campaign';
import type { DirectPublisher } from './direct-publisher';
import type { HttpClient } from './http-client';
import type { Door } from './tenant-steps';
import type { Tenant } from './watched-system';

export interface Answer {
  status: string;
  id?: string;
  text: string;
  body: { result?: Record<string, unknown> & { data?: unknown; pageToken?: string } };
}

export const markOf = (tenant: number) => `mark-of-tenant-${tenant}`;

/** Both doors of the system for one tenant. No answer has anything of another one. */
export class TenantDoor {
  constructor(
    private readonly http: HttpClient,
    private readonly publisher: DirectPublisher,
    private readonly tenants: readonly Tenant[],
    readonly index: number,
    private readonly tally: Tally,
  ) {}

  get apiKey(): string {
    return this.tenants[this.index].apiKey;
  }

  async ask(through: Door, operation: Operation, data: object, idempotencyKey?: string): Promise<Answer> {
    const answer = await (through === 'http'
      ? this.askOverHttp(operation, data, idempotencyKey)
      : this.askOverTheQueue(operation, data, idempotencyKey));
    this.tally.add(`${operation} ${through} ${answer.status}`);
    for (const [other, { apiKey }] of this.tenants.entries()) {
      if (other === this.index) continue;
      expect(answer.text).not.toContain(markOf(other));
      expect(answer.text).not.toContain(apiKey);
    }
    return answer;
  }

  private async askOverHttp(operation: Operation, data: object, idempotencyKey?: string): Promise<Answer> {
    const { headers, text } = await this.http.send({
      method: 'POST',
      path: `/v1/${operation}`,
      headers: [
        ...['content-type', 'application/json'],
        ...Object.entries(this.tenants[this.index].headers).flat(),
        ...(idempotencyKey === undefined ? [] : ['idempotency-key', idempotencyKey]),
      ],
      body: Buffer.from(JSON.stringify({ data })),
      chunked: false,
    });
    const body = JSON.parse(text) as Answer['body'] & { error?: { status: string } };
    const id = headers['x-notification-id'] as string | undefined;
    return { status: body.error?.status ?? 'OK', text, body, ...(id !== undefined && { id: decodeURIComponent(id) }) };
  }

  private async askOverTheQueue(operation: Operation, data: object, idempotencyKey?: string): Promise<Answer> {
    const call = randomUUID();
    await this.publisher.ask(patternOf(operation), Buffer.from(JSON.stringify(data)), call, {
      messageId: call,
      userId: this.publisher.account,
      headers: {
        'x-api-key': this.apiKey,
        ...(idempotencyKey !== undefined && { 'x-idempotency-key': idempotencyKey }),
      },
    });
    const { status, headers, text } = await this.publisher.reply(call);
    const result = JSON.parse(text) as Answer['body']['result'];
    return { status: String(status), text, body: { result }, id: headers['x-notification-id'] as string | undefined };
  }
}
