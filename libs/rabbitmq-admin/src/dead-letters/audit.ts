import { writeSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { LetterSummary } from './dead-letter';
import { DeadLetterError } from './errors';

export type Action = 'show' | 'replay' | 'drop';

/** Record of an action on one dead letter, with its operator. It never contains the body. */
export interface AuditLine {
  time: string;
  operator: string;
  action: Action;
  queue: string;
  id: string;
  operation: string | null;
  apiKey: string | null;
  /** Broker account of its publisher, with whose rights it is replayed; null when there is none or it is unknown. */
  publisher: string | null;
  outcome: 'shown' | 'replayed' | 'dropped' | 'kept' | 'would be replayed' | 'would be dropped' | 'would be kept';
  /** Reason why it was kept. */
  reason?: string;
}

export function auditLine(
  action: Action,
  { queue, id, operation, apiKey, account }: LetterSummary,
  outcome: AuditLine['outcome'],
  reason?: string,
): AuditLine {
  return {
    time: new Date().toISOString(),
    operator: operator(),
    action,
    queue,
    id,
    operation: operation ?? null,
    apiKey: apiKey ?? null,
    publisher: account ?? null,
    outcome,
    ...(reason !== undefined && { reason }),
  };
}

/** A container may run under a user id without a name. */
function operator(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

/** Writes an audit line, before the action becomes final. @throws DeadLetterError when it cannot be written */
export type Audit = (line: AuditLine) => void;

/** Prints every line, and appends it to an open file when there is one. */
export const auditTo =
  (print: (line: string) => void, file: number | undefined): Audit =>
  (line) => {
    const json = JSON.stringify(line);
    try {
      if (file !== undefined) writeSync(file, `${json}\n`);
    } catch (error) {
      // A replayed letter is removed after its line, and the other queue has it already.
      const isTwice = line.outcome === 'replayed' ? ', and was published as well' : '';
      throw new DeadLetterError(`The audit cannot be written: ${(error as Error).message}. Letter ${line.id} stays${isTwice}.`);
    }
    print(json);
  };
