import { CallTurns, MOST_BESIDE_SETTLED } from '../src/admission/call-turns';
import type { Kind } from '../src/admission/kinds';
import { callsWaiting } from '../src/server/metrics';

export const [WRITES, READS] = ['notifications.commands', 'notifications.queries'] as const;
export const MANY = 10 * MOST_BESIDE_SETTLED;

/** Begins and ends calls by hand. A key is settled when its name begins so. */
export class CallTurnsBench {
  readonly turns = new CallTurns();
  /** Keys in the order in which their calls began. */
  begun: string[] = [];

  constructor() {
    callsWaiting.reset();
  }

  turn(apiKey: string, kind: Kind, heavyBytes = 0) {
    return { kind, apiKey, heavyBytes, isSettled: apiKey.startsWith('settled') };
  }

  /** @returns what gives the call up */
  begin(apiKey: string, kind: Kind = WRITES, heavyBytes?: number): () => boolean {
    return this.turns.begin(this.turn(apiKey, kind, heavyBytes), () => this.begun.push(apiKey));
  }

  beginMany(apiKey: string, count = MANY, kind: Kind = WRITES, heavyBytes?: number): void {
    for (let call = 0; call < count; call++) this.begin(apiKey, kind, heavyBytes);
  }

  end(apiKey: string, kind: Kind = WRITES, heavyBytes?: number): void {
    this.turns.end(this.turn(apiKey, kind, heavyBytes), true);
  }

  begunOf(apiKey: string): number {
    return this.begun.filter((one) => one === apiKey).length;
  }

  /** Calls that wait, as the metric says. */
  async waiting(): Promise<number> {
    return (await callsWaiting.get()).values[0].value;
  }
}
