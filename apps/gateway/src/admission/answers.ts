import { LRUCache } from 'lru-cache';
import type { Kind } from './kinds';
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
  /** Only sizes above the default. */
  private readonly expected = new LRUCache<string, number>({ max: MAX_KEYS });

  constructor(private readonly maxBytes: number) {
    bytesWaitingLimit.set(maxBytes);
    this.shares = new Shares(maxBytes, (held) => bytesWaiting.set(held));
  }

  /** Reserves the expected bytes for the answer to a call. @returns the bytes, or the limit that leaves no room */
  expect(kind: Kind, apiKey: string): number | Met {
    const bytes = this.expectedOf(kind, apiKey);
    return this.shares.take(apiKey, bytes) ?? bytes;
  }

  /**
   * Corrects the reservation to the actual size. The answer to a command must be sent even without room; a query may be refused.
   *
   * @returns the limit that leaves no room; then nothing has changed
   */
  putRight(kind: Kind, apiKey: string, expected: number, bytes: number): Met | undefined {
    if (bytes <= expected) this.shares.give(apiKey, expected - bytes);
    else if (kind.endsWith('queries')) return this.shares.take(apiKey, bytes - expected);
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
  learn(kind: Kind, apiKey: string, bytes: number): void {
    const usual = usualOf(kind);
    const before = this.expectedOf(kind, apiKey);
    if (bytes <= usual && before <= usual) return;
    const expected = Math.max(bytes, Math.floor(before * KEPT));
    if (expected > usual) this.expected.set(nameOf(kind, apiKey), expected);
    else this.expected.delete(nameOf(kind, apiKey));
  }

  private expectedOf(kind: Kind, apiKey: string): number {
    return this.expected.get(nameOf(kind, apiKey)) ?? usualOf(kind);
  }
}

const nameOf = (kind: Kind, apiKey: string) => `${kind} ${apiKey}`;
const usualOf = (kind: Kind) => EXPECTED[kind.endsWith('queries') ? 'queries' : 'commands'];
