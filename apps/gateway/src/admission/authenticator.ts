import { Logger } from '@nestjs/common';
import { ApiError } from '@app/contracts/error';
import { Authenticate, VERDICTS, type Verdict } from '@app/contracts/users.authenticate';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { authentications } from '../server/metrics';
import type { Credentials } from './credentials';
import { Semaphore } from './semaphore';
import { VerdictCache, type KnownVerdict } from './verdict-cache';

/** Younger: used as it is. */
const FRESH_MS = 3000;
/** Older: not used while the users service answers, so that a revocation holds within this time even if nobody told of it. In between: used, and renewed behind it. */
const RENEWED_MS = 5000;
const QUESTION_TIMEOUT_MS = 1000;
/** While the users service is away, it is asked at most this often: not every call waits for the same silence. */
const RETRY_MS = 1000;
/**
 * First questions in flight, and renewals of what was refused. Wrong tokens are cheap to make up, and each is a question: those in flight stand
 * before the renewals of right ones in the queue, and must not make them wait.
 */
export const MAX_FIRST_QUESTIONS = 32;
/** First questions that wait for one of those to end. */
export const MAX_WAITING_QUESTIONS = 256;

/** Knows what credentials are worth: asks the users service, and remembers. */
export class Authenticator {
  private readonly logger = new Logger('Authenticator');
  private readonly cache = new VerdictCache();
  private readonly questions = new Map<string, Promise<Verdict>>();
  private readonly semaphore: Semaphore;
  private answeredAt = -Infinity;
  private away = false;
  private nextTryAt = 0;
  private forgottenAt = -Infinity;

  /**
   * @param staleMaxMs how long a verdict is still used while the users service is away
   * @param now monotonic milliseconds
   */
  constructor(
    private readonly rabbit: Pick<RabbitClient, 'call'>,
    private readonly staleMaxMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    const limits = { atATime: MAX_FIRST_QUESTIONS, waiting: MAX_WAITING_QUESTIONS, patienceMs: QUESTION_TIMEOUT_MS };
    this.semaphore = new Semaphore(limits, now);
  }

  /** @throws ApiError UNAVAILABLE when nothing is known of them and the users service does not answer */
  async verdictOf(credentials: Credentials, requestId: string): Promise<Verdict> {
    const known = this.cache.get(credentials.cacheKey);
    const age = known ? this.now() - known.askedAt : Infinity;
    if (!known || age > Math.max(this.staleMaxMs, RENEWED_MS)) return this.first(credentials, requestId);
    if (age < FRESH_MS) return used('hit', known);

    const question = this.renewal(credentials, requestId, known);
    if (age < RENEWED_MS) return used('hit', known);
    if (!question || this.away) return used('stale', known);
    return question.catch(() => this.afterSilence(credentials, requestId, known));
  }

  /** Whether they were right a moment ago. Asks nobody. */
  isAccepted({ cacheKey }: Credentials): boolean {
    const known = this.cache.get(cacheKey);
    return known?.verdict === 'accepted' && this.now() - known.askedAt < RENEWED_MS;
  }

  /**
   * The credentials of an API key are asked for anew from the next call on. While the users service is away they are not known any more, and
   * calls with them are UNAVAILABLE.
   */
  forget(apiKey: string): void {
    this.cache.forget(apiKey);
    // What was asked before may be answered with what was true before: nobody joins such a question, and its answer is not kept.
    this.questions.clear();
    this.forgottenAt = this.now();
  }

  /** A renewal was not answered. While others are, what was known before does not count: the question is put once more. */
  private async afterSilence(credentials: Credentials, requestId: string, known: KnownVerdict): Promise<Verdict> {
    if (this.away) return used('stale', known);
    const question = this.questions.get(credentials.cacheKey) ?? this.ask(credentials, requestId);
    return question.catch((cause: unknown) => (this.away ? used('stale', known) : throwUnavailable(cause)));
  }

  private async first(credentials: Credentials, requestId: string): Promise<Verdict> {
    const running = this.questions.get(credentials.cacheKey);
    if (!running && (this.isWaitingToRetry() || this.semaphore.isFull)) throw unavailable();
    authentications.inc({ source: 'miss' });
    return (running ?? this.question(credentials, () => this.askInTurn(credentials, requestId))).catch(throwUnavailable);
  }

  private async askInTurn(credentials: Credentials, requestId: string): Promise<Verdict> {
    const turn = this.semaphore.take();
    if (turn !== true && !(await turn)) throw new Error('Too many credentials are new.');
    try {
      if (turn !== true && this.away) throw new Error('Those before were not answered.');
      return await this.answerOf(credentials, requestId);
    } finally {
      this.semaphore.end();
    }
  }

  /** @returns undefined when this is not the time to ask */
  private renewal(credentials: Credentials, requestId: string, known: KnownVerdict): Promise<Verdict> | undefined {
    const running = this.questions.get(credentials.cacheKey);
    if (running) return running;
    if (this.isWaitingToRetry()) return undefined;
    // Wrong credentials may wait: what they are denied in the meantime they had no right to.
    const isWrong = known.verdict === 'refused';
    if (isWrong && this.semaphore.isFull) return undefined;
    authentications.inc({ source: 'renewal' });
    const question = isWrong
      ? this.question(credentials, () => this.askInTurn(credentials, requestId))
      : this.ask(credentials, requestId);
    // Nobody may be waiting for it.
    question.catch(() => undefined);
    return question;
  }

  private isWaitingToRetry(): boolean {
    return this.away && this.now() < this.nextTryAt;
  }

  private ask(credentials: Credentials, requestId: string): Promise<Verdict> {
    return this.question(credentials, () => this.answerOf(credentials, requestId));
  }

  private question({ cacheKey }: Credentials, put: () => Promise<Verdict>): Promise<Verdict> {
    // One try at a time: the next one waits until this one has had its chance.
    this.nextTryAt = this.now() + RETRY_MS;
    const question = put().finally(() => {
      if (this.questions.get(cacheKey) === question) this.questions.delete(cacheKey);
    });
    this.questions.set(cacheKey, question);
    return question;
  }

  private async answerOf({ apiKey, tokenHash, cacheKey }: Credentials, requestId: string): Promise<Verdict> {
    const askedAt = this.now();
    try {
      const answer = await this.rabbit.call(Authenticate, { apiKey, tokenHash }, { requestId, timeoutMs: QUESTION_TIMEOUT_MS });
      const { verdict } = answer.parse();
      if (!VERDICTS.includes(verdict)) throw new Error('The users service gave a verdict that is none.');
      this.answeredAt = this.now();
      if (askedAt > this.forgottenAt) this.cache.set(cacheKey, { apiKey, verdict, askedAt });
      this.setAway(false);
      return verdict;
    } catch (error) {
      this.nextTryAt = this.now() + RETRY_MS;
      // One question may be lost. The service is away when it has answered no other one meanwhile, or cannot be asked.
      if (!isSilence(error) || this.answeredAt < askedAt) this.setAway(true, error);
      throw error;
    }
  }

  private setAway(away: boolean, cause?: unknown): void {
    if (away === this.away) return;
    this.away = away;
    if (away) this.logger.warn({ msg: 'the users service does not answer: known credentials stay valid', reason: String(cause) });
    else this.logger.log('the users service answers again');
  }
}

const isSilence = (error: unknown) => error instanceof ApiError && error.status === 'DEADLINE_EXCEEDED';

function used(source: 'hit' | 'stale', { verdict }: KnownVerdict): Verdict {
  authentications.inc({ source });
  return verdict;
}

function unavailable(cause?: unknown): ApiError {
  authentications.inc({ source: 'unavailable' });
  return new ApiError('UNAVAILABLE', 'The credentials cannot be checked at the moment. Nothing was done.', undefined, { cause });
}

const throwUnavailable = (cause: unknown): never => {
  throw unavailable(cause);
};
