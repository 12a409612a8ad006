import { createHash } from 'node:crypto';
import type { ChannelModel } from 'amqplib';
import { destroySocket, openConnection, type ConnectionOptions } from '@app/amqp/connection/open-connection';
import { within } from '@app/runtime/within';
import type { DeadLetter, LetterSummary } from '@app/rabbitmq-admin/dead-letters/dead-letter';
import { eachLetter, type LetterVisitor } from '@app/rabbitmq-admin/dead-letters/each-letter';
import { DeadLetterError } from '@app/rabbitmq-admin/dead-letters/errors';
import { LETTER_QUEUES, type LetterQueue } from '@app/rabbitmq-admin/dead-letters/letter-queue';
import { countLetters } from '@app/rabbitmq-admin/dead-letters/opened-queue';
import { replay } from '@app/rabbitmq-admin/dead-letters/replay';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { Refusal } from '../admission/refusal';
import type { AuditedForm } from './audited';

/** Letters of a queue that the page reads, from its head: they are in memory with their bodies. The command line has no such limit. */
export const MOST_LETTERS = 100;
const BOUNDS = { held: MOST_LETTERS, milliseconds: 20_000, answerMs: 10_000 };
const CLOSE_TIMEOUT_MS = 2000;

/** A letter without its body. */
export interface ListedLetter extends LetterSummary {
  /** Names it in forms and links. Its publisher chooses the id, and another letter may have the same one: equal marks are of equal letters. */
  mark: string;
}

/** The first letters of a queue. */
export interface LetterList {
  letters: ListedLetter[];
  /** Letters that the queue has. */
  total: number;
}

/** The id of the letter with this mark. */
export const idOf = (mark: string): string => mark.slice(mark.indexOf('.') + 1);

/** Of what stays while a letter waits: headers of the broker count its deliveries. */
function markOf({ id, operation, apiKey, account, status, reason, attempts, firstFailedAt, message }: DeadLetter): string {
  const facts = JSON.stringify([id, operation, apiKey, account, status, reason, attempts, firstFailedAt]);
  return `${createHash('sha256').update(facts).update(message.content).digest('base64url')}.${id}`;
}

/** Dead letters, by the functions of `npm run dead-letters`. Each use has a connection of its own, with the full-rights account. */
export class Letters {
  private readonly own: string;
  private readonly services: ReadonlySet<string>;
  private readonly stopping = new AbortController();
  /** One search at a time, so that no more letters are in memory. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly connection: ConnectionOptions,
    services: readonly string[],
  ) {
    this.own = parseBrokerUrl(connection.url).username;
    this.services = new Set([...services, this.own]);
  }

  /** Number of letters in each queue. */
  async counts(): Promise<{ queue: LetterQueue; count: number }[]> {
    const names = LETTER_QUEUES.map(({ name }) => name);
    const counts = await this.connected((model) => countLetters(model, names, BOUNDS));
    return LETTER_QUEUES.map((queue, index) => ({ queue, count: counts[index] ?? 0 }));
  }

  async list(queue: LetterQueue): Promise<LetterList> {
    const letters: ListedLetter[] = [];
    const total = await this.visit(queue, async (_opened, letter) => {
      const { message: _message, ...summary } = letter;
      letters.push({ ...summary, mark: markOf(letter) });
    });
    return { letters, total };
  }

  /** A letter with its body, which may name people: with an audit line. @throws Refusal 404 */
  async read(queue: LetterQueue, mark: string, form: AuditedForm): Promise<DeadLetter> {
    let found: DeadLetter | undefined;
    await this.visit(queue, async (_opened, letter) => {
      if (markOf(letter) === mark) found ??= letter;
    });
    if (!found) throw new Refusal(404, `This letter is not among the first ${MOST_LETTERS} of ${queue.name}.`);
    const letter = found;
    return form.run(`${queue.name} ${letter.id}`, describe(letter), async () => ({ outcome: 'shown', result: letter }));
  }

  /** Replays or drops the letters with these marks, each with an audit line, also one that is not there any more. @throws Refusal 404 when none is */
  async act(action: 'replay' | 'drop', queue: LetterQueue, marks: ReadonlySet<string>, form: AuditedForm): Promise<void> {
    const left = new Set(marks);
    await this.visit(queue, async (opened, letter) => {
      const mark = markOf(letter);
      if (!marks.has(mark)) return;
      left.delete(mark);
      await form.run(`${queue.name} ${letter.id}`, describe(letter), async () => {
        const obstacle =
          action === 'replay' ? await replay(opened, letter, { own: this.own, services: this.services }) : undefined;
        if (obstacle !== undefined) return { outcome: `kept: ${obstacle}`, result: undefined };
        opened.remove(letter);
        return { outcome: action === 'replay' ? 'replayed' : 'dropped', result: undefined };
      });
    });
    if (left.size === marks.size)
      throw new Refusal(404, `None of these letters is among the first ${MOST_LETTERS} of ${queue.name} any more.`);
    const outcome = `not found among the first ${MOST_LETTERS}, or not reached in ${BOUNDS.milliseconds / 1000} s`;
    for (const mark of left) await form.run(`${queue.name} ${idOf(mark)}`, '', async () => ({ outcome, result: undefined }));
  }

  /** Ends a running search after its current letter. */
  close(): void {
    this.stopping.abort();
  }

  /** @returns the number of letters that the queue has */
  private async visit(queue: LetterQueue, visit: LetterVisitor['visit']): Promise<number> {
    const search = { queues: [queue], filter: {}, limit: Infinity, services: this.services, bounds: BOUNDS };
    let total = 0;
    const visitor: LetterVisitor = { visit, endOfQueue: (opened) => void (total = opened.total) };
    await this.connected((model) => eachLetter(model, { ...search, signal: this.stopping.signal }, visitor));
    return total;
  }

  private connected<T>(work: (model: ChannelModel) => Promise<T>): Promise<T> {
    const result = this.last.then(() => this.connectedNow(work));
    this.last = result.catch(() => undefined);
    return result;
  }

  private async connectedNow<T>(work: (model: ChannelModel) => Promise<T>): Promise<T> {
    let model: ChannelModel | undefined;
    try {
      model = await openConnection(this.connection);
      return await work(model);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      if (error instanceof DeadLetterError) throw new Refusal(409, error.message);
      throw new Refusal(503, `The broker cannot be used: ${(error as Error).message}`);
    } finally {
      const opened = model;
      if (opened) {
        await within(CLOSE_TIMEOUT_MS, (async () => opened.close())());
        destroySocket(opened);
      }
    }
  }
}

const describe = ({ operation, status, apiKey }: LetterSummary): string =>
  [operation ?? 'unknown operation', status, ...(apiKey === undefined ? [] : [`API key ${apiKey}`])].join(', ');
