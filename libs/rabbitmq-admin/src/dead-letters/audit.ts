import { writeSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { LetterSummary } from './dead-letter';

export type Action = 'replay' | 'drop';

/** What was done with one letter, and by whom. Never what the letter says. */
export interface AuditLine {
  time: string;
  operator: string;
  action: Action;
  queue: string;
  id: string;
  operation: string | null;
  apiKey: string | null;
  /** Broker account of its publisher, with whose rights it is replayed; null is nobody, or not known. */
  publisher: string | null;
  outcome: 'replayed' | 'dropped' | 'kept' | 'would be replayed' | 'would be dropped' | 'would be kept';
  /** Why it was kept. */
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

/** A container may run under a number that no user has. */
function operator(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

/** Where what is done is written before it is final. */
export type Audit = (line: AuditLine) => void;

/** Prints every line, and appends it to an open file when there is one. */
export const auditTo =
  (print: (line: string) => void, file: number | undefined): Audit =>
  (line) => {
    const json = JSON.stringify(line);
    if (file !== undefined) writeSync(file, `${json}\n`);
    print(json);
  };
