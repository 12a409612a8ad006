import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Something that a client wants to be there: once, whatever it takes. */
export interface Thing {
  kind: 'notification' | 'user';
  tenant: number;
  /** Occurs nowhere else: what is found later is recognized by it. */
  mark: string;
  /** The body's `data`. */
  data: Record<string, unknown>;
  idempotencyKey?: string;
}

/** 0: no answer, because the connection ended or could not be made. */
export interface Told {
  status: number;
  ms: number;
  /** How long the machine let everybody wait in that time. */
  noiseMs: number;
  /** The id that the answer named. */
  id?: string;
  /** Its Retry-After. */
  retryAfter?: string;
  /** Why it is no answer of the published form. */
  malformed?: string;
}

export interface Ask {
  thing: Thing;
  askedAt: number;
  told?: Told;
  /** Whether it was there one second after the deadline; asked of the database for outcomes that were unknown. */
  finally?: boolean;
}

/**
 * What a client asked and what it was told, in a file: written before it is sent, and before the answer is used. What is verified later is
 * what the file says.
 */
export class Journal {
  private readonly directory = mkdtempSync(join(tmpdir(), 'fault-journal-'));
  readonly path = join(this.directory, 'journal.jsonl');
  private readonly file = openSync(this.path, 'a');
  private asks = 0;

  /** @returns the number of the ask */
  ask(thing: Thing): number {
    this.append({ ask: this.asks, thing, askedAt: Date.now() });
    return this.asks++;
  }

  tell(ask: number, told: Told): void {
    this.append({ ask, told });
  }

  settle(ask: number, isThere: boolean): void {
    this.append({ ask, finally: isThere });
  }

  read(): Ask[] {
    const asks: Ask[] = [];
    for (const line of readFileSync(this.path, 'utf8').split('\n').filter(Boolean)) {
      const { ask, ...facts } = JSON.parse(line) as { ask: number } & Ask;
      asks[ask] = { ...asks[ask], ...facts };
    }
    return asks;
  }

  remove(): void {
    closeSync(this.file);
    rmSync(this.directory, { recursive: true });
  }

  private append(entry: object): void {
    appendFileSync(this.file, `${JSON.stringify(entry)}\n`);
  }
}
