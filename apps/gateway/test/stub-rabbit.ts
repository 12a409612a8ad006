import { ApiError } from '@app/contracts/error';
import type { Message } from '@app/contracts/message';
import { Authenticate, type AuthenticateRequest, type Verdict } from '@app/contracts/users.authenticate';
import type { Answer, CallOptions } from '@app/rabbitmq/client/rabbit.client';
import { gate } from '@app/testing/gate';

export const UNAVAILABLE = new ApiError('UNAVAILABLE', 'The broker is not connected. Nothing was done.');

export const answer = <T>(result: T, headers: Record<string, unknown> = {}): Answer<T> => ({
  body: Buffer.from(JSON.stringify(result)),
  headers,
  parse: () => result,
});

interface Call {
  pattern: string;
  body: object;
  options: CallOptions;
}

/** Replaces the broker and the services, to test only HTTP. */
export class StubRabbit {
  readonly calls: Call[] = [];
  verdict: Verdict | Error = 'accepted';
  /** Verdicts wait for it. */
  checking: Promise<void> = Promise.resolve();
  /** Accepted API keys. */
  readonly keys = new Set(['demo-key', 'other-key']);
  respond: (call: Call) => Answer<unknown> | Promise<Answer<unknown>> = () => answer({ status: 'success' });

  async call<Req, Res>(message: Message<Req, Res>, body: Req, options: CallOptions): Promise<Answer<Res>> {
    if (message.pattern === Authenticate.pattern) return (await this.authenticate(body as AuthenticateRequest)) as Answer<Res>;
    const call = { pattern: message.pattern, body: body as object, options };
    this.calls.push(call);
    return (await this.respond(call)) as Answer<Res>;
  }

  /** Keeps calls waiting. @returns `started` resolves after `calls` calls; `finish` answers all calls, present and future */
  hold(calls = 1): { started: Promise<void>; finish: () => void } {
    const { open: finish, opened: finished } = gate();
    const started = new Promise<void>((resolve) => {
      this.respond = async () => {
        if (--calls === 0) resolve();
        await finished;
        return answer({ status: 'success' });
      };
    });
    return { started, finish };
  }

  private async authenticate({ apiKey }: AuthenticateRequest): Promise<Answer<{ verdict: Verdict }>> {
    await this.checking;
    if (this.verdict instanceof Error) throw this.verdict;
    return answer({ verdict: this.keys.has(apiKey) ? this.verdict : 'refused' });
  }
}
