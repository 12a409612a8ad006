import { LRUCache } from 'lru-cache';
import { isQuery, type Kind } from './kinds';
import { bytesWaiting, bytesWaitingLimit } from '../server/metrics';
import { Shares, type Met } from './shares';

/** Default expected size of an answer, in bytes. */
const EXPECTED: Record<'commands' | 'queries', number> = { commands: 1024, queries: 16 * 1024 };
/** After a smaller answer the expected size falls to this fraction. */
const KEPT = 7 / 8;
const MAX_KEYS = 10_000;
/** Holder of answers that need no API key. No API key is empty. */
const NOBODY = '';
/** Once these hold such a part of all, a further one is refused. */
const PART_OF_NOBODY = 1 / 8;

/**
 * Limits the bytes of answers, from the start of a call until the client has read its answer. The size of an answer is unknown at first: it is
 * assumed to be that of the largest recent answer of the key, and corrected when the answer exists.
 */
export class Answers {
  private readonly shares: Shares;
  private readonly expected = new LRUCache<string, number>({ max: MAX_KEYS });

  constructor(private readonly maxBytes: number) {
    bytesWaitingLimit.set(maxBytes);
    this.shares = new Shares(maxBytes, (held) => bytesWaiting.set(held));
  }

  /** The expected bytes of an answer. Undefined: the key has none of this operation that anybody remembers. */
  sizeOf(operation: string, apiKey: string): number | undefined {
    return this.expected.get(nameOf(operation, apiKey));
  }

  /**
   * Reserves the expected bytes for the answer to a call.
   *
   * @param reserved the bytes that are reserved already
   * @returns the bytes that are reserved now, or the limit that leaves no room; then nothing has changed
   */
  expect(kind: Kind, operation: string, apiKey: string, reserved = 0): number | Met {
    const bytes = Math.max(reserved, this.sizeOf(operation, apiKey) ?? usualOf(kind));
    return (bytes > reserved ? this.shares.take(apiKey, bytes - reserved) : undefined) ?? bytes;
  }

  /**
   * Corrects the reservation to the actual size. The answer to a command must be sent even without room; a query may be refused.
   *
   * @returns the limit that leaves no room; then nothing has changed
   */
  putRight(kind: Kind, apiKey: string, expected: number, bytes: number): Met | undefined {
    if (bytes <= expected) this.shares.give(apiKey, expected - bytes);
    else if (isQuery(kind)) return this.shares.take(apiKey, bytes - expected);
    else this.shares.add(apiKey, bytes - expected);
    return undefined;
  }

  give(apiKey: string, bytes: number): void {
    this.shares.give(apiKey, bytes);
  }

  /** Reserves bytes for an answer that needs no API key. */
  takeForNobody(bytes: number): Met | undefined {
    return this.isFullForNobody ? 'share' : this.shares.take(NOBODY, bytes);
  }

  /** Whether every answer that needs no API key would be refused. */
  get isFullForNobody(): boolean {
    return this.shares.of(NOBODY) >= PART_OF_NOBODY * this.maxBytes;
  }

  giveForNobody(bytes: number): void {
    this.shares.give(NOBODY, bytes);
  }

  /** Remembers the size of a result for the next answers to this key. */
  learn(kind: Kind, operation: string, apiKey: string, bytes: number): void {
    const name = nameOf(operation, apiKey);
    const before = this.expected.get(name);
    const expected = Math.max(bytes, Math.floor((before ?? 0) * KEPT), usualOf(kind));
    // Only queries have turns by their sizes. Other entries would push theirs out.
    if (!isQuery(kind) && expected === usualOf(kind)) this.expected.delete(name);
    else if (expected !== before) this.expected.set(name, expected);
  }
}

const nameOf = (operation: string, apiKey: string) => `${operation} ${apiKey}`;
const usualOf = (kind: Kind) => EXPECTED[isQuery(kind) ? 'queries' : 'commands'];
