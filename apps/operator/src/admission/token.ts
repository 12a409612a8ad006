import { createHash, timingSafeEqual } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

const TRIES = 5;
const SECONDS = 60;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** The operator's token: five wrong tries a minute, from all addresses together, because it is one secret. */
export class OperatorToken {
  private readonly digest: Buffer;
  private readonly wrong = new RateLimiterMemory({ points: TRIES, duration: SECONDS });

  constructor(token: string) {
    this.digest = digest(token);
  }

  /** @returns whether it is the token, or the seconds after which the next try is looked at */
  async check(given: string): Promise<boolean | { retryAfter: number }> {
    try {
      // Counted before it is compared: tries that come at the same time count, too.
      await this.wrong.consume('all');
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      return { retryAfter: Math.ceil(refused.msBeforeNext / 1000) };
    }
    // Digests have one length, so the time says nothing about the token.
    const isRight = timingSafeEqual(digest(given), this.digest);
    if (isRight) await this.wrong.reward('all');
    return isRight;
  }
}
