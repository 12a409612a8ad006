import type { Answers } from './answers';
import type { CallTurns } from './call-turns';
import type { Kind } from './kinds';
import type { Places } from './places';
import type { Limit } from './too-many-requests';
import type { Met, Shares } from './shares';

/** Limited resources of one gateway process. */
export interface Capacity {
  places: Places;
  /** Bytes of large bodies. */
  bodies: Shares;
  answers: Answers;
  turns: CallTurns;
}

/** Name of the limit that was reached. */
export const limitOf = (what: 'in_flight' | 'arriving' | 'waiting', met: Met): Limit =>
  met === 'share' ? `${what}_share` : what;

/**
 * Resources that one call holds: the bytes of its body until it is answered; a place from the end of its body until it is answered, even if its
 * client has left, because the work continues; the bytes of its answer until the client has read it.
 */
export class Hold {
  private bodyBytes = 0;
  private atWork = false;
  private isSettled = false;
  private answerBytes = 0;
  private closed = false;

  constructor(
    private readonly capacity: Capacity,
    private readonly kind: Kind,
    private readonly apiKey: string,
  ) {}

  /** Reserves the bytes of the body. @returns the limit that was reached, if any */
  takeBody(bytes: number): Limit | undefined {
    const met = this.capacity.bodies.take(this.apiKey, bytes);
    if (met) return limitOf('arriving', met);
    this.bodyBytes = bytes;
    return undefined;
  }

  /** The body has arrived. @returns the limit that was reached; then the call holds nothing any more */
  begin(): Limit | undefined {
    const { places, answers } = this.capacity;
    const met = places.take(this.kind, this.apiKey);
    if (met) return this.refused(limitOf('in_flight', met));
    const bytes = answers.expect(this.kind, this.apiKey);
    if (typeof bytes === 'string') {
      places.give(this.kind, this.apiKey);
      return this.refused(limitOf('waiting', bytes));
    }
    this.atWork = true;
    this.answerBytes = bytes;
    return undefined;
  }

  /** Begins the work of the call in its turn, or ends the call then because its client has left. Call it once, after {@link begin}. */
  whenTurn(work: () => void): void {
    const { places, turns } = this.capacity;
    this.isSettled = places.isSettled(this.apiKey);
    turns.begin(this.kind, this.apiKey, this.isSettled, () => {
      if (this.closed) this.answered(0, false);
      else work();
    });
  }

  /**
   * The call is answered.
   *
   * @param isResult false: an error, whose size says nothing about the next answer
   * @returns the limit that was reached; then there is no room to keep the answer for the client
   */
  answered(bytes: number, isResult: boolean): Limit | undefined {
    if (!this.atWork) return undefined;
    this.atWork = false;
    this.capacity.places.give(this.kind, this.apiKey);
    this.capacity.turns.end(this.kind, this.isSettled);
    this.giveBody();
    const { answers } = this.capacity;
    if (isResult) answers.learn(this.kind, this.apiKey, bytes);
    const met = answers.putRight(this.kind, this.apiKey, this.answerBytes, bytes);
    if (!met) this.answerBytes = bytes;
    if (met || this.closed) this.giveAnswer();
    return met && limitOf('waiting', met);
  }

  /** The client has read the answer, or has left. */
  close(): void {
    this.closed = true;
    if (this.atWork) return;
    this.giveBody();
    this.giveAnswer();
  }

  private refused(limit: Limit): Limit {
    this.giveBody();
    return limit;
  }

  private giveBody(): void {
    if (this.bodyBytes > 0) this.capacity.bodies.give(this.apiKey, this.bodyBytes);
    this.bodyBytes = 0;
  }

  private giveAnswer(): void {
    if (this.answerBytes > 0) this.capacity.answers.give(this.apiKey, this.answerBytes);
    this.answerBytes = 0;
  }
}
