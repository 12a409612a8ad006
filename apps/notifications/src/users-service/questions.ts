import { FairQueue } from '@app/runtime/fair-queue';
import { ApiError } from '@app/contracts/error';

/**
 * Most questions at work in a process, of one API key and of all. While the users service is away, each of them keeps a message of the calls for
 * 2 s. A process has 32 of these, and the rest is for commands without a question. More would be no faster: a users process answers 7 at a time.
 */
export const MOST_QUESTIONS = { ofKey: 8, ofAll: 16 };
/** Longest wait of a question for its turn, and the silence after which none waits any more. */
export const PATIENCE_MS = 500;

/**
 * Bounds the questions to the users service, so that commands that wait for its answers do not keep others from their turns. API keys take turns.
 * While the service is silent, a question without a turn fails at once: after a wait it would fail, too.
 */
export class Questions {
  private readonly waiting = new FairQueue<() => void>();
  private readonly atWork = new Map<string, number>();
  private allAtWork = 0;
  /** Time of the latest answer, and of the latest question that began. In milliseconds of `performance.now()`. */
  private answeredAt = -Infinity;
  private begunAt = -Infinity;
  /** A question has failed, and none was answered since it began. */
  private hasFailed = false;

  /** @throws ApiError UNAVAILABLE when it has no turn. Otherwise what the question throws */
  async ask<T>(apiKey: string, question: () => Promise<T>): Promise<T> {
    await this.turnOf(apiKey);
    const begunAt = performance.now();
    try {
      const answer = await question();
      this.answeredAt = performance.now();
      this.hasFailed = false;
      return answer;
    } catch (error) {
      // One that is lost says nothing about the others.
      this.hasFailed = this.answeredAt < begunAt;
      throw error;
    } finally {
      this.end(apiKey);
    }
  }

  private turnOf(apiKey: string): Promise<void> | undefined {
    if (this.mayBegin(apiKey)) return void this.begin(apiKey);
    if (this.isSilent) throw noTurn();
    return new Promise((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer);
        resolve();
      };
      this.waiting.add(apiKey, begin);
      const timer = setTimeout(() => {
        this.waiting.remove(apiKey, begin);
        reject(noTurn());
      }, PATIENCE_MS).unref();
    });
  }

  private get isSilent(): boolean {
    return this.hasFailed || performance.now() - Math.max(this.answeredAt, this.begunAt) >= PATIENCE_MS;
  }

  private begin(apiKey: string): void {
    this.begunAt = performance.now();
    this.atWork.set(apiKey, this.of(apiKey) + 1);
    this.allAtWork++;
  }

  private end(apiKey: string): void {
    const left = this.of(apiKey) - 1;
    if (left > 0) this.atWork.set(apiKey, left);
    else this.atWork.delete(apiKey);
    this.allAtWork--;
    let owner = '';
    const next = this.waiting.takeFirst((one) => this.mayBegin((owner = one)));
    if (!next) return;
    this.begin(owner);
    next();
  }

  private of(apiKey: string): number {
    return this.atWork.get(apiKey) ?? 0;
  }

  private mayBegin(apiKey: string): boolean {
    return this.of(apiKey) < MOST_QUESTIONS.ofKey && this.allAtWork < MOST_QUESTIONS.ofAll;
  }
}

const noTurn = () => new ApiError('UNAVAILABLE', 'The users service does not answer so many questions at the moment.');
