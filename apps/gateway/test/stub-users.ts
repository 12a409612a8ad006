import type { Verdict } from '@app/contracts/users.authenticate';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import type { Credentials } from '../src/admission/credentials';
import { answer } from './stub-rabbit';

export const who = (name: string): Credentials => ({ apiKey: name, tokenHash: name, cacheKey: name });

/** A users service whose answers the test controls. */
export class StubUsers {
  readonly asked: { apiKey: string; settle: (verdict: Verdict | Error) => void }[] = [];
  /** `once`: answers at once. `hand`: the test answers. */
  at: 'once' | 'hand' = 'once';
  verdict: Verdict | Error = 'accepted';

  call = ((_message: unknown, { apiKey }: { apiKey: string }) => {
    const reply = new Promise((resolve, reject) => {
      const settle = (verdict: Verdict | Error) => (verdict instanceof Error ? reject(verdict) : resolve(answer({ verdict })));
      this.asked.push({ apiKey, settle });
      if (this.at === 'once') settle(this.verdict);
    });
    return reply;
  }) as RabbitClient['call'];
}
