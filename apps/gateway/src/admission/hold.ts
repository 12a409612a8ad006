import type { Answers } from './answers';
import type { Kind } from './kinds';
import type { Places } from './places';
import type { Limit } from './too-many-requests';
import type { Met, Shares } from './shares';

/** What there is only so much of. */
export interface Capacity {
  places: Places;
  /** Bytes of large bodies. */
  bodies: Shares;
  answers: Answers;
}

/** The name of the limit that was met. */
export const limitOf = (what: 'in_flight' | 'arriving' | 'waiting', met: Met): Limit =>
  met === 'share' ? `${what}_share` : what;

/**
 * What one call holds. Its body until it is answered; a place from the end of its body until it is answered, also when its client has left,
 * because the work goes on; room for its answer until the client has taken it.
 */
export class Hold {
  private bodyBytes = 0;
  private atWork = false;
  private answerBytes = 0;
  private closed = false;

  constructor(
    private readonly capacity: Capacity,
    private readonly kind: Kind,
    private readonly apiKey: string,
  ) {}

  /** @returns the limit that it meets */
  takeBody(bytes: number): Limit | undefined {
    const met = this.capacity.bodies.take(this.apiKey, bytes);
    if (met) return limitOf('arriving', met);
    this.bodyBytes = bytes;
    return undefined;
  }

  /** Its body is there. @returns the limit that it meets: then it holds nothing any more */
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

  /** Its answer is there. @returns the limit that it meets: the answer cannot be kept until its client takes it */
  answered(bytes: number): Limit | undefined {
    if (!this.atWork) return undefined;
    this.atWork = false;
    this.capacity.places.give(this.kind, this.apiKey);
    this.giveBody();
    const met = this.capacity.answers.putRight(this.kind, this.apiKey, this.answerBytes, bytes);
    if (!met) this.answerBytes = bytes;
    if (met || this.closed) this.giveAnswer();
    return met && limitOf('waiting', met);
  }

  /** Its client has taken the answer, or has left. */
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
