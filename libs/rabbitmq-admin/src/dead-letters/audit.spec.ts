import { closeSync, openSync } from 'node:fs';
import { auditLine, auditTo } from './audit';
import type { LetterSummary } from './dead-letter';

describe(auditTo.name, () => {
  it.each([
    ['replay', 'replayed', 'Letter m-0 stays, and was published as well.'],
    ['replay', 'kept', 'Letter m-0 stays.'],
    ['drop', 'dropped', 'Letter m-0 stays.'],
  ] as const)('says what has become of a letter whose line finds no room: %s, %s', (action, outcome, end) => {
    const printed: string[] = [];
    const full = openSync('/dev/full', 'w');
    const audit = auditTo((line) => printed.push(line), full);
    const letter = { queue: 'notifications.commands.dead', id: 'm-0' } as LetterSummary;
    expect(() => audit(auditLine(action, letter, outcome))).toThrow(`ENOSPC: no space left on device, write. ${end}`);
    closeSync(full);
    expect(printed).toEqual([]);
  });
});
