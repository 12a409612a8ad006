import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import { counted } from '@app/runtime/counted';
import { UsageError } from '@app/runtime/command-line';
import { auditLine, type Audit, type AuditLine } from './audit';
import type { Invocation } from './command-line';
import type { LetterSummary } from './dead-letter';
import { eachLetter, type LetterVisitor } from './each-letter';
import { DeadLetterError } from './errors';
import { letterData, listLines, showLines, summaryData } from './format';
import type { Bounds } from './opened-queue';
import { replay, replayObstacle, withAccount, type Accounts } from './replay';

/** Output and environment of a run. */
export interface Surroundings {
  /** Prints the result. */
  print: (text: string) => void;
  /** Prints notes for the operator, apart from the result. */
  note: (text: string) => void;
  audit: Audit;
  accounts: Accounts;
  /** Ends the run after the current dead letter. */
  signal: AbortSignal;
  bounds?: Bounds;
}

/**
 * Executes a command on an open connection.
 *
 * @returns whether the command was done completely
 * @throws UsageError, DeadLetterError, or an error of the broker
 */
export async function run(model: ChannelModel, invocation: Invocation, surroundings: Surroundings): Promise<boolean> {
  const { services } = surroundings.accounts;
  if (invocation.as !== undefined && services.has(invocation.as) && invocation.filter.id === undefined) {
    throw new UsageError(`"${invocation.as}" may do anything for every tenant: --as with it needs --id ID, letter by letter.`);
  }
  const visitor = visitorOf(invocation, surroundings);
  let complete = true;
  await eachLetter(
    model,
    { ...invocation, services, signal: surroundings.signal, bounds: surroundings.bounds },
    {
      visit: (queue, letter) => visitor.visit(queue, letter),
      endOfQueue: (queue) => {
        visitor.endOfQueue?.(queue);
        if (queue.incomplete !== undefined) surroundings.note(`${queue.name}: ${queue.incomplete}.`);
        complete &&= queue.incomplete === undefined;
      },
    },
  );
  if (surroundings.signal.aborted) surroundings.note('Interrupted; the rest is unchanged.');
  return visitor.end() && complete && !surroundings.signal.aborted;
}

/** Action of a command for each matching dead letter. */
interface Visitor extends LetterVisitor {
  /** @returns whether everything succeeded */
  end(): boolean;
}

function visitorOf(invocation: Invocation, surroundings: Surroundings): Visitor {
  switch (invocation.command) {
    case 'list':
      return lister(invocation, surroundings);
    case 'show':
      return shower(invocation, surroundings);
    case 'replay':
      return replayer(invocation, surroundings);
    case 'drop':
      return dropper(invocation, surroundings);
  }
}

function lister({ json }: Invocation, { print }: Surroundings): Visitor {
  const all: LetterSummary[] = [];
  const empty: string[] = [];
  let ofQueue: LetterSummary[] = [];
  return {
    async visit(_, { message: _message, ...summary }) {
      all.push(summary);
      ofQueue.push(summary);
    },
    endOfQueue({ name, total }) {
      if (total === 0) empty.push(name);
      else if (!json)
        print([`${name}: ${listedOf(ofQueue.length, total)}`, ...(ofQueue.length > 0 ? listLines(ofQueue) : [])].join('\n'));
      ofQueue = [];
    },
    end() {
      if (json) print(JSON.stringify({ deadLetters: all.map(summaryData) }));
      else if (empty.length > 0) print(`Empty: ${empty.join(', ')}`);
      return true;
    },
  };
}

const listedOf = (listed: number, total: number) => `${listed === total ? '' : `${listed} of `}${counted(total, 'dead letter')}`;

function shower({ json, filter }: Invocation, { audit, print }: Surroundings): Visitor {
  const data: ReturnType<typeof letterData>[] = [];
  let found = false;
  return {
    async visit(_, letter) {
      found = true;
      audit(auditLine('show', letter, 'shown'));
      if (json) data.push(letterData(letter));
      else print(showLines(letter).join('\n'));
    },
    end() {
      if (!found) throw new DeadLetterError(`There is no dead letter with the id "${filter.id}".`);
      if (json) print(JSON.stringify({ deadLetters: data }));
      return true;
    },
  };
}

function replayer({ as, dryRun, rate }: Invocation, { accounts, audit, note, signal }: Surroundings): Visitor {
  const tally = new Tally('replay', audit, note);
  let nextAt = 0;
  return {
    async visit(queue, found) {
      const letter = withAccount(found, as);
      if (dryRun) {
        const obstacle = replayObstacle(letter, accounts);
        return tally.add(letter, obstacle === undefined ? 'would be replayed' : 'would be kept', obstacle);
      }
      await sleep(Math.max(0, nextAt - performance.now()), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      nextAt = Math.max(nextAt, performance.now()) + 1000 / rate;
      const obstacle = await replay(queue, letter, accounts).catch((error: unknown) => {
        tally.add(letter, 'kept', `it is not known whether it was published: ${(error as Error).message}`);
        throw error;
      });
      tally.add(letter, obstacle === undefined ? 'replayed' : 'kept', obstacle);
      if (obstacle === undefined) queue.remove(letter);
    },
    end: () => tally.end(),
  };
}

function dropper({ dryRun }: Invocation, { audit, note }: Surroundings): Visitor {
  const tally = new Tally('drop', audit, note);
  return {
    async visit(queue, letter) {
      tally.add(letter, dryRun ? 'would be dropped' : 'dropped');
      if (!dryRun) queue.remove(letter);
    },
    end: () => tally.end(),
  };
}

/** Writes the audit line of each dead letter before the action becomes final, and counts the outcomes. */
class Tally {
  private readonly counts = new Map<AuditLine['outcome'], number>();

  constructor(
    private readonly action: AuditLine['action'],
    private readonly audit: Audit,
    private readonly note: Surroundings['note'],
  ) {}

  add(letter: LetterSummary, outcome: AuditLine['outcome'], reason?: string): void {
    this.audit(auditLine(this.action, letter, outcome, reason));
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + 1);
  }

  end(): boolean {
    const parts = [...this.counts].map(([outcome, count]) => `${count} ${outcome}`);
    this.note(parts.length > 0 ? `${parts.join(', ')}.` : 'No dead letter matches.');
    return !this.counts.has('kept');
  }
}
