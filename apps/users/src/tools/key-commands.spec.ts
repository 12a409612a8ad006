import { UsageError } from '@app/runtime/command-line';
import { readCommandLine } from './key-commands';

/** Before the database is opened. */
function usageError(args: string[]): string {
  try {
    readCommandLine(args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error('no usage error');
}

const NAMES = 'create, list, issue-token, rotate, disable, enable, revoke, grant, withdraw';

describe('keys command line', () => {
  it.each([
    [`A command is missing; there are: ${NAMES}.`, ''],
    [`There is no command constructor; there are: ${NAMES}.`, 'constructor'],
    ['There is no command isue-token; did you mean issue-token?', 'isue-token key_1'],
    ['create has no option --force; there are: --name, --expires-in, --json, --help.', 'create --force'],
    ['--name needs a value.', 'create --name'],
    ['list has no option --name; there are: --limit, --json, --help.', 'list --name x'],
    ['disable has no option --token; there are: --json, --help.', 'disable key_1 --token x'],
    ['list takes one TEXT.', 'list key_1 key_2'],
    ['--limit must be a whole number from 1 to 1000000.', 'list --limit 0'],
    ['create takes no KEY: keys are random. Name it with --name.', 'create demo-key'],
    ['issue-token takes one KEY.', 'issue-token'],
    ['rotate takes one KEY.', 'rotate key_1 key_2'],
    ['revoke takes a KEY or --token ID.', 'revoke'],
    ['revoke takes a KEY or --token ID.', 'revoke key_1 --token x'],
    ['--expires-in must be a number with s, m, h or d, such as 90d.', 'issue-token key_1 --expires-in 90'],
    ['--expires-in must be a number with s, m, h or d, such as 90d.', 'issue-token key_1 --expires-in 0d'],
    ['--expires-in must be a number with s, m, h or d, such as 90d.', 'issue-token key_1 --expires-in 9999999999d'],
    ['--grace must be a number with s, m, h or d, such as 90d.', 'rotate key_1 --grace soon'],
    ['grant needs --publisher ACCOUNT.', 'grant key_1'],
    ['grant takes one KEY.', 'grant --publisher billing'],
    ['--publisher must be at most 256 bytes of UTF-8.', `withdraw key_1 --publisher ${'x'.repeat(257)}`],
    ['--name must be at most 320 characters.', `create --name ${'x'.repeat(321)}`],
  ])('says %j to %j', (message, line) => {
    expect(usageError(line.split(' ').filter(Boolean))).toBe(message);
  });

  it('runs no command when --help is given', () => {
    expect(readCommandLine(['rotate', '--help'])).toBeUndefined();
  });
});
