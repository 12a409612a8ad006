import type { Answers } from './answers';
import type { CallTurns, Turn } from './call-turns';
import { heavyBytesOf, isQuery, type Kind } from './kinds';
import { LARGE_BYTES, type LargeBodies } from './large-bodies';
import type { Places } from './places';
import type { Limit } from './too-many-requests';
import type { Met, Shares } from './shares';

/** Limited resources of one gateway process. */
export interface Capacity {
  places: Places;
  /** Bytes of large bodies. */
  bodies: Shares;
  /** Bytes of the others, apart: slow callers with large bodies leave room for them. */
  smallBodies: Shares;
  answers: Answers;
  turns: CallTurns;
  largeBodies: LargeBodies;
}

/** Name of the limit that was reached. */
export const limitOf = (what: 'in_flight' | 'arriving' | 'waiting', met: Met): Limit =>
  met === 'share' ? `${what}_share` : what;

/**
 * Resources that one call holds: the bytes of its body until it is answered; a place from the end of its body until it is answered; the bytes of its
 * answer until the client has read it. A call whose client has left holds them while it is at work, because the work continues.
 */
export class Hold {
  private bodyBytes = 0;
  /** Of the large body whose turn has come, and when that was, in milliseconds of `performance.now()`. */
  private large?: { bytes: number; since: number };
  private hasPlace = false;
  /** Its turn has come. */
  private turn?: Turn;
  /** Gives up the turn, see {@link CallTurns.begin}. */
  private leave = () => false;
  private timer?: NodeJS.Timeout;
  private answerBytes = 0;
  private closed = false;

  constructor(
    private readonly capacity: Capacity,
    private readonly kind: Kind,
    private readonly apiKey: string,
    /** Of a command, see {@link Turn}. */
    private heavyBytes = 0,
    /** Answers to the same one have similar sizes. */
    private readonly operation: string = kind,
  ) {}

  /** Reserves the bytes of the body. @returns the limit that was reached, if any */
  takeBody(bytes: number): Limit | undefined {
    const met = this.sharesOf(bytes).take(this.apiKey, bytes);
    if (met) return limitOf('arriving', met);
    this.bodyBytes = bytes;
    return undefined;
  }

  /** A body of this size has arrived, with a declared size or without. */
  bodyArrived(bytes: number): void {
    if (!isQuery(this.kind)) this.heavyBytes = Math.max(this.heavyBytes, heavyBytesOf(this.operation, bytes));
  }

  /**
   * Calls `work` when it is the turn of a large body that has arrived, or when the time of its call is over. Never when the client has left.
   *
   * @param met present when the time is over: then the call must only be refused. `share`: the key has other large bodies there
   */
  whenTurnOfBody(bytes: number, msLeft: number, work: (met?: Met) => void): void {
    if (this.closed) return;
    const { largeBodies } = this.capacity;
    this.leave = largeBodies.begin(this.apiKey, bytes, () => {
      clearTimeout(this.timer);
      this.large = { bytes, since: performance.now() };
      if (this.closed) this.endLarge();
      else work();
    });
    // A timer may be early by a millisecond.
    const tooLate = () => this.leave() && work(largeBodies.has(this.apiKey) ? 'share' : 'all');
    this.timer = setTimeout(tooLate, Math.ceil(msLeft) + 1).unref();
  }

  /** The body has arrived. @returns the limit that was reached; then the call holds nothing any more */
  begin(): Limit | undefined {
    const { places, answers, largeBodies } = this.capacity;
    if (!this.large && !this.closed) largeBodies.smallCall(this.apiKey);
    const met = places.take(this.kind, this.apiKey);
    if (met) return this.refused(limitOf('in_flight', met));
    const bytes = answers.expect(this.kind, this.operation, this.apiKey);
    if (typeof bytes === 'string') {
      places.give(this.kind, this.apiKey);
      return this.refused(limitOf('waiting', bytes));
    }
    this.hasPlace = true;
    this.answerBytes = bytes;
    return undefined;
  }

  /**
   * Begins the work of the call in its turn, or without one when its time is over: then the work must only refuse the call. Never begins it when the
   * client has left. Call it once, after {@link begin}.
   *
   * @param work.limit the limit that was reached meanwhile; then the call holds nothing any more
   */
  whenTurn(msLeft: number, work: (limit?: Limit) => void): void {
    if (this.closed) return void this.answered(0, false);
    const { places, turns, answers } = this.capacity;
    const { kind, apiKey, operation } = this;
    const heavyBytes = isQuery(kind) ? answers.sizeOf(operation, apiKey) : this.heavyBytes;
    const turn = { kind, apiKey, heavyBytes, isSettled: places.isSettled(apiKey) };
    const since = performance.now();
    let hasWaited = false;
    this.leave = turns.begin(turn, () => {
      clearTimeout(this.timer);
      this.turn = turn;
      work(hasWaited ? this.limitAfterWait() : undefined);
    });
    if (this.turn) return;
    hasWaited = true;
    const tooLate = () => {
      if (!this.leave()) return;
      work(turns.isOverShare(turn, since) ? this.refusedInTurn('in_flight_share') : undefined);
    };
    // A timer may be early by a millisecond.
    this.timer = setTimeout(tooLate, Math.ceil(msLeft) + 1).unref();
  }

  /** Answers of its key may have shown meanwhile that its own will be larger. */
  private limitAfterWait(): Limit | undefined {
    const bytes = this.capacity.answers.expect(this.kind, this.operation, this.apiKey, this.answerBytes);
    if (typeof bytes === 'string') return this.refusedInTurn(limitOf('waiting', bytes));
    this.answerBytes = bytes;
    return undefined;
  }

  private refusedInTurn(limit: Limit): Limit {
    if (this.turn) this.capacity.turns.end(this.turn, false);
    this.turn = undefined;
    this.answered(0, false);
    return limit;
  }

  /**
   * The call is answered.
   *
   * @param isResult false: an error, whose size says nothing about the next answer
   * @returns the limit that was reached; then there is no room to keep the answer for the client
   */
  answered(bytes: number, isResult: boolean): Limit | undefined {
    this.endLarge();
    if (!this.hasPlace) return undefined;
    this.hasPlace = false;
    const { answers, places, turns } = this.capacity;
    places.give(this.kind, this.apiKey);
    if (this.turn) {
      places.answered(this.apiKey);
      turns.end(this.turn, isResult);
    }
    this.giveBody();
    if (isResult) answers.learn(this.kind, this.operation, this.apiKey, bytes);
    const met = answers.putRight(this.kind, this.apiKey, this.answerBytes, bytes);
    if (!met) this.answerBytes = bytes;
    if (met || this.closed) this.giveAnswer();
    return met && limitOf('waiting', met);
  }

  /** The client has read the answer, or has left. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    if (this.leave()) this.answered(0, false);
    if (this.hasPlace) return;
    this.endLarge();
    this.giveBody();
    this.giveAnswer();
  }

  private refused(limit: Limit): Limit {
    this.endLarge();
    this.giveBody();
    return limit;
  }

  private endLarge(): void {
    const { large } = this;
    if (!large) return;
    this.large = undefined;
    this.capacity.largeBodies.end(this.apiKey, large.bytes, performance.now() - large.since);
  }

  private giveBody(): void {
    if (this.bodyBytes > 0) this.sharesOf(this.bodyBytes).give(this.apiKey, this.bodyBytes);
    this.bodyBytes = 0;
  }

  private sharesOf(bytes: number): Shares {
    return bytes > LARGE_BYTES ? this.capacity.bodies : this.capacity.smallBodies;
  }

  private giveAnswer(): void {
    if (this.answerBytes > 0) this.capacity.answers.give(this.apiKey, this.answerBytes);
    this.answerBytes = 0;
  }
}
