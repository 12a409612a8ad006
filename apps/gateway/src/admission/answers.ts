import { LRUCache } from 'lru-cache';
import type { Kind } from './kinds';
import { bytesWaiting, bytesWaitingLimit } from '../server/metrics';
import { Shares, type Met } from './shares';

/** What an answer is expected to have, in bytes, while nothing else is known. */
const EXPECTED: Record<'commands' | 'queries', number> = { commands: 1024, queries: 16 * 1024 };
/** The share of an expectation that outlives a smaller answer. */
const KEPT = 7 / 8;
const MAX_KEYS = 10_000;
/** The flow of what is sent to everybody: no API key is empty. */
const NOBODY = '';

/**
 * The bytes of answers, from the call on until the client has taken them: how large an answer will be nobody knows before, so it is expected
 * to be as large as the largest that its key had lately, and put right when it is there.
 */
export class Answers {
  private readonly shares: Shares;
  /** Only of what is larger than usual. */
  private readonly expected = new LRUCache<string, number>({ max: MAX_KEYS });

  constructor(maxBytes: number) {
    bytesWaitingLimit.set(maxBytes);
    this.shares = new Shares(maxBytes, (held) => bytesWaiting.set(held));
  }

  /** Makes room for the answer to a call. @returns the bytes, or why there is no room */
  expect(kind: Kind, apiKey: string): number | Met {
    const bytes = this.expectedOf(kind, apiKey);
    return this.shares.take(apiKey, bytes) ?? bytes;
  }

  /**
   * Makes room for more than was expected. What was done has to be told, room or not; what was only read need not.
   *
   * @returns why there is no room; then nothing has changed
   */
  putRight(kind: Kind, apiKey: string, expected: number, bytes: number): Met | undefined {
    this.learn(kind, apiKey, bytes);
    if (bytes <= expected) this.shares.give(apiKey, expected - bytes);
    else if (kind.endsWith('queries')) return this.shares.take(apiKey, bytes - expected);
    else this.shares.add(apiKey, bytes - expected);
    return undefined;
  }

  give(apiKey: string, bytes: number): void {
    this.shares.give(apiKey, bytes);
  }

  /** Makes room for what needs no API key. */
  takeForNobody(bytes: number): Met | undefined {
    return this.shares.take(NOBODY, bytes);
  }

  giveForNobody(bytes: number): void {
    this.shares.give(NOBODY, bytes);
  }

  private expectedOf(kind: Kind, apiKey: string): number {
    return this.expected.get(nameOf(kind, apiKey)) ?? usualOf(kind);
  }

  private learn(kind: Kind, apiKey: string, bytes: number): void {
    const usual = usualOf(kind);
    const before = this.expectedOf(kind, apiKey);
    if (bytes <= usual && before <= usual) return;
    const expected = Math.max(bytes, Math.floor(before * KEPT));
    if (expected > usual) this.expected.set(nameOf(kind, apiKey), expected);
    else this.expected.delete(nameOf(kind, apiKey));
  }
}

const nameOf = (kind: Kind, apiKey: string) => `${kind} ${apiKey}`;
const usualOf = (kind: Kind) => EXPECTED[kind.endsWith('queries') ? 'queries' : 'commands'];
