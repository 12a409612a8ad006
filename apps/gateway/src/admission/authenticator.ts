import { Logger } from '@nestjs/common';
import { ApiError } from '@app/contracts/error';
import { Authenticate, VERDICTS, type Verdict } from '@app/contracts/users.authenticate';
import type { CallOptions, RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { authentications } from '../server/metrics';
import type { Credentials } from './credentials';
import { Semaphore } from './semaphore';
import { VerdictCache, type KnownVerdict } from './verdict-cache';

/** A younger verdict is used as it is. */
const FRESH_MS = 3000;
/**
 * An older verdict is not used while the users service answers, so that a revocation takes effect within this time even if its event is lost.
 * Between the two ages a verdict is used, and renewed in the background.
 */
const RENEWED_MS = 5000;
const QUESTION_TIMEOUT_MS = 1000;
/** Pause between questions while the users service is away, so that not every call waits for a timeout. */
const RETRY_MS = 1000;
/**
 * Most first questions and renewals of refused verdicts in flight. Wrong tokens are cheap to invent, and each costs a question. In the queue they
 * stand before renewals of accepted tokens, and must not delay these.
 */
export const MAX_FIRST_QUESTIONS = 32;
/** Most first questions that wait for one in flight to end. */
export const MAX_WAITING_QUESTIONS = 256;

/** No token has this hash: its verdict is `refused`. */
const PROBE: Credentials = { apiKey: 'probe', tokenHash: '0'.repeat(64), cacheKey: 'probe' };

export const NOT_CHECKED = 'The credentials cannot be checked at the moment. Nothing was done.';

/** The request whose credentials are checked. */
interface Asker extends Pick<CallOptions, 'requestId' | 'span'> {
  /** Of the client: first questions of different ones take turns. */
  network?: string;
}

/** Checks credentials: asks the users service, and caches its verdicts. */
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

  /** @throws ApiError UNAVAILABLE when the credentials are not cached and the users service does not answer */
  async verdictOf(credentials: Credentials, asker: Asker): Promise<Verdict> {
    const known = this.cache.get(credentials.cacheKey);
    const age = known ? this.now() - known.askedAt : Infinity;
    if (!known || age > Math.max(this.staleMaxMs, RENEWED_MS)) return this.first(credentials, asker);
    if (age < FRESH_MS) return used('hit', known);

    const question = this.renewal(credentials, asker, known);
    if (age < RENEWED_MS) return used('hit', known);
    if (!question || this.away) return used('stale', known);
    return question.catch(() => this.afterSilence(credentials, asker, known));
  }

  /** Whether the cached verdict is younger than 5 s and accepts. Asks no question. */
  isAccepted({ cacheKey }: Credentials): boolean {
    const known = this.cache.get(cacheKey);
    return known?.verdict === 'accepted' && this.now() - known.askedAt < RENEWED_MS;
  }

  /** Whether the last verdict accepts, however old it is. It decides about the order of calls only. */
  isFamiliar({ cacheKey }: Credentials): boolean {
    return this.cache.get(cacheKey)?.verdict === 'accepted';
  }

  /** Whether a call with these credentials is refused because too many new ones are being checked. Asks no question. */
  isRefused({ cacheKey }: Credentials, network: string): boolean {
    if (!this.semaphore.isFull(network) || this.questions.has(cacheKey) || this.cache.get(cacheKey)) return false;
    authentications.inc({ source: 'unavailable' });
    return true;
  }

  /** Whether the users service has ever answered. */
  get hasAnswered(): boolean {
    return this.answeredAt > -Infinity;
  }

  /** undefined while the users service answers, else a short reason without secrets. */
  check(): string | undefined {
    if (!this.hasAnswered) return 'has not answered yet';
    return this.away ? 'does not answer' : undefined;
  }

  /** Asks the users service about credentials that do not exist, unless it has answered within `quietMs`. Takes up to 1 s; never rejects. */
  async probe(quietMs: number): Promise<void> {
    if (!this.away && this.now() - this.answeredAt < quietMs) return;
    await (this.questions.get(PROBE.cacheKey) ?? this.ask(PROBE, { requestId: 'probe' })).catch(() => undefined);
  }

  /** Whether {@link isRefused} can be true. */
  isFull(network: string): boolean {
    return this.semaphore.isFull(network);
  }

  /**
   * Forgets the verdicts of an API key: the next call asks again. While the users service is away, such calls are answered UNAVAILABLE.
   */
  forget(apiKey: string): void {
    this.cache.forget(apiKey);
    // A running question may return the state before the revocation: no call joins it, and its answer is not cached.
    this.questions.clear();
    this.forgottenAt = this.now();
  }

  /** After a renewal without an answer. If other questions are answered, the old verdict does not count, and the question is asked once more. */
  private async afterSilence(credentials: Credentials, asker: Asker, known: KnownVerdict): Promise<Verdict> {
    if (this.away) return used('stale', known);
    const question = this.questions.get(credentials.cacheKey) ?? this.ask(credentials, asker);
    return question.catch((cause: unknown) => (this.away ? used('stale', known) : throwUnavailable(cause)));
  }

  private async first(credentials: Credentials, asker: Asker): Promise<Verdict> {
    const running = this.questions.get(credentials.cacheKey);
    if (!running && (this.isWaitingToRetry() || this.semaphore.isFull(networkIn(asker)))) throw unavailable();
    authentications.inc({ source: 'miss' });
    return (running ?? this.question(credentials, () => this.askInTurn(credentials, asker))).catch(throwUnavailable);
  }

  private async askInTurn(credentials: Credentials, asker: Asker): Promise<Verdict> {
    const turn = this.semaphore.take(networkIn(asker));
    if (turn !== true && !(await turn)) throw new Error('Too many new credentials are being checked.');
    try {
      if (turn !== true && this.away) throw new Error('The users service does not answer.');
      return await this.answerOf(credentials, asker);
    } finally {
      this.semaphore.end();
    }
  }

  /** @returns undefined when no question may be asked now */
  private renewal(credentials: Credentials, asker: Asker, known: KnownVerdict): Promise<Verdict> | undefined {
    const running = this.questions.get(credentials.cacheKey);
    if (running) return running;
    if (this.isWaitingToRetry()) return undefined;
    // The renewal of a refused verdict may wait: meanwhile the credentials stay refused.
    const isWrong = known.verdict === 'refused';
    if (isWrong && this.semaphore.isFull(networkIn(asker))) return undefined;
    authentications.inc({ source: 'renewal' });
    const question = isWrong
      ? this.question(credentials, () => this.askInTurn(credentials, asker))
      : this.ask(credentials, asker);
    // Avoids an unhandled rejection when no call awaits the question.
    question.catch(() => undefined);
    return question;
  }

  private isWaitingToRetry(): boolean {
    return this.away && this.now() < this.nextTryAt;
  }

  private ask(credentials: Credentials, asker: Asker): Promise<Verdict> {
    return this.question(credentials, () => this.answerOf(credentials, asker));
  }

  private question({ cacheKey }: Credentials, put: () => Promise<Verdict>): Promise<Verdict> {
    // While the service is away: one attempt per pause.
    this.nextTryAt = this.now() + RETRY_MS;
    const question = put().finally(() => {
      if (this.questions.get(cacheKey) === question) this.questions.delete(cacheKey);
    });
    this.questions.set(cacheKey, question);
    return question;
  }

  private async answerOf({ apiKey, tokenHash, cacheKey }: Credentials, { requestId, span }: Asker): Promise<Verdict> {
    const askedAt = this.now();
    try {
      const answer = await this.rabbit.call(
        Authenticate,
        { apiKey, tokenHash },
        { timeoutMs: QUESTION_TIMEOUT_MS, requestId, span },
      );
      const { verdict } = answer.parse();
      if (!VERDICTS.includes(verdict)) throw new Error('The users service gave an unknown verdict.');
      this.answeredAt = this.now();
      if (askedAt > this.forgottenAt) this.cache.set(cacheKey, { apiKey, verdict, askedAt });
      this.setAway(false);
      return verdict;
    } catch (error) {
      this.nextTryAt = this.now() + RETRY_MS;
      // A single question may be lost. The service is away if it answered no other question meanwhile, or if it cannot be asked.
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

const networkIn = ({ network = '' }: Asker) => network;
const isSilence = (error: unknown) => error instanceof ApiError && error.status === 'DEADLINE_EXCEEDED';

function used(source: 'hit' | 'stale', { verdict }: KnownVerdict): Verdict {
  authentications.inc({ source });
  return verdict;
}

function unavailable(cause?: unknown): ApiError {
  authentications.inc({ source: 'unavailable' });
  return new ApiError('UNAVAILABLE', NOT_CHECKED, undefined, { cause });
}

const throwUnavailable = (cause: unknown): never => {
  throw unavailable(cause);
};
