import { UsageError } from '@app/runtime/command-line';
import { readCommandLine } from './command-line';

describe('the command line of accounts', () => {
  it.each([
    [['create', 'users', '--events', 'user.added.v1'], 'a name of the system'],
    [['create', 'amq', '--events', 'user.added.v1'], 'a name of the system'],
    [['create', 'a.b', '--events', 'user.added.v1'], 'NAME must be'],
    [['create', 'x'], 'Say what it is for'],
    [['create', 'x', '--operations', 'users.authorize.v1'], '--operations has no "users.authorize.v1"'],
    [
      ['create', 'x', '--operations', 'notification.add.v1'],
      '--operations has no "notification.add.v1"; did you mean notifications.add.v1?',
    ],
    [['create', 'x', '--events', 'user.add.v1'], '--events has no "user.add.v1"; did you mean user.added.v1?'],
    [['create', 'x', '--events', '#'], '--events has no "#"'],
    [['create', 'x', '--replies', '--events', 'user.added.v1'], '--replies needs --operations'],
    [['create', 'x', '--lane', '1', '--events', 'user.added.v1'], '--lane needs --operations'],
    [['create', 'x', '--lane', '4', '--operations', 'users.add.v1'], '--lane must be one of 0, 1, 2, 3'],
    [['create', 'x', '--queue', 'mail', '--operations', 'users.add.v1'], '--queue needs --events'],
    [['create', 'x', '--queue', 'mail,dead', '--events', 'user.added.v1'], '--queue must be'],
    [['create', 'x', '--connections', '0', '--events', 'user.added.v1'], '--connections must be'],
    [['delete'], 'needs the NAME'],
    [['list', 'x'], 'one word too many'],
    [['rotate', 'x', '--queues'], 'rotate has no option --queues'],
  ])('is refused: %j', (args, message) => {
    expect(() => readCommandLine(args)).toThrow(UsageError);
    expect(() => readCommandLine(args)).toThrow(message);
  });
});
