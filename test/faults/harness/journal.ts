import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Something that a client wants to be stored exactly once, with any number of attempts, or a change of it, with one attempt. */
export interface Thing {
  kind: 'notification' | 'user' | 'deletion' | 'reading' | 'mark' | 'removal';
  tenant: number;
  /** A unique text by which it is found again. */
  mark: string;
  /** `data` of the body. */
  data: Record<string, unknown>;
  idempotencyKey?: string;
  /** Of a change: the id that its effect is found by, … */
  target?: string;
  /** … and the mark of the changed thing. */
  of?: string;
}

/** Answer to a request. Status 0: no answer, because the connection ended or could not be opened. */
export interface Answer {
  status: number;
  ms: number;
  /** Longest delay by the machine itself in that time. */
  noiseMs: number;
  /** The id in the answer. */
  id?: string;
  /** Its Retry-After. */
  retryAfter?: string;
  /** Reason why the answer does not have the published form. */
  malformed?: string;
  /** Text of an error. */
  error?: string;
  /** Reason why the answer says that nothing was changed. */
  undone?: string;
}

export interface Ask {
  thing: Thing;
  askedAt: number;
  answer?: Answer;
  /** Whether it was stored, or changed, one second after the deadline; read from the database when the outcome was unknown. */
  finally?: boolean;
}

/**
 * Journal of requests and answers in a file. A request is written before it is sent, an answer before it is used. The later verification reads
 * only the file.
 */
export class Journal {
  private readonly directory = mkdtempSync(join(tmpdir(), 'fault-journal-'));
  readonly path = join(this.directory, 'journal.jsonl');
  private readonly file = openSync(this.path, 'a');
  private asks = 0;

  /** @returns the number of the request */
  ask(thing: Thing): number {
    this.append({ ask: this.asks, thing, askedAt: Date.now() });
    return this.asks++;
  }

  answer(ask: number, answer: Answer): void {
    this.append({ ask, answer });
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
