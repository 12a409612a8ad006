import { SERVICES, letterQueues } from '@app/rabbitmq/topology/topology';
import { UsageError } from '@app/runtime/command-line';
import { readCommandLine } from './command-line';
import { HELP } from './help';
import { LETTER_QUEUES } from './letter-queue';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const read = (line: string) => readCommandLine(line.split(' ').filter(Boolean), NOW);

const WHICH =
  '--status, --operation, --api-key, --publisher, --id, --request-id, --user, --reason, --since, --until, --limit, --queue, --service, --kind';

describe('dead letters command line', () => {
  it.each([
    ['A command is missing; there are: list, show, replay, drop.', ''],
    ['There is no command purge; there are: list, show, replay, drop.', 'purge'],
    ['There is no command relay; did you mean replay?', 'relay'],
    ['list takes options only, not "m-1".', 'list m-1'],
    ['list has no option --limits; did you mean --limit?', 'list --limits 5'],
    [`list has no option --yes; there are: ${WHICH}, --all, --json, --help.`, 'list --yes'],
    [`show has no option --all; there are: ${WHICH}, --audit, --json, --help.`, 'show --all'],
    [
      `drop has no option --rate; there are: ${WHICH}, --all, --dry-run, --yes, --audit, --json, --help.`,
      'drop --all --yes --rate 5',
    ],
    [
      `replay has no option --yes; there are: ${WHICH}, --all, --dry-run, --rate, --as, --audit, --json, --help.`,
      'replay --all --yes',
    ],
    ['show needs --id ID: list shows it.', 'show'],
    ['replay needs a condition such as --id or --status, or --all.', 'replay'],
    ['replay needs a condition such as --id or --status, or --all.', 'replay --limit 5 --service users --dry-run'],
    ['drop needs a condition such as --id or --status, or --all.', 'drop --yes'],
    ['drop deletes permanently: give --yes, or --dry-run for a preview.', 'drop --all'],
    [
      'drop --user needs --api-key or --id: another tenant may have a user with this id.',
      'drop --user ada --status internal --yes',
    ],
    ['--all means no other condition: give one of them.', 'replay --all --id m-1'],
    ['--id must not be empty.', 'replay --id='],
    ['There is no service "gateway": users, notifications.', 'list --service gateway'],
    [
      `There are no dead letters in "users.commands", only in ${SERVICES.flatMap(letterQueues).join(', ')}.`,
      'list --queue users.commands',
    ],
    ['--queue says what --service and --kind say: give it alone.', 'list --queue users.commands.dead --service users'],
    ['--queue says what --service and --kind say: give it alone.', 'list --queue users.commands.dead --kind dead'],
    ['There are no dead letters of kind "lost": dead, crashed, refused.', 'list --kind lost'],
    ['--as must not be empty.', 'replay --all --as='],
    ['--limit must be a whole number from 1 to 1000000.', 'list --limit 0'],
    ['--rate must be a whole number from 1 to 10000.', 'replay --all --rate 0.5'],
    [
      '--since must be a time such as 2026-01-31T12:00:00Z, or how long ago with s, m, h or d, such as 2h.',
      'list --since yesterday',
    ],
    [
      '--until must be a time such as 2026-01-31T12:00:00Z, or how long ago with s, m, h or d, such as 2h.',
      'list --until 2026-02-31T99:00:00Z',
    ],
  ])('says %j to %j', (message, line) => {
    expect(() => read(line)).toThrow(new UsageError(message));
  });

  it('refuses an unknown status', () => {
    expect(() => read('list --status OOPS')).toThrow(/^--status must be one of: INVALID_ARGUMENT, .*CRASHED/);
  });

  it('only prints the help with --help, which says which command shows a body', () => {
    expect(read('drop --help')).toBeUndefined();
    expect(HELP).toContain('the only command that prints the body');
  });

  it('reads every dead-letter queue', () => {
    expect(LETTER_QUEUES.map(({ name }) => name)).toEqual(SERVICES.flatMap(letterQueues));
  });

  it('defaults to all queues, no limit and 100 per second', () => {
    expect(read('replay --all')).toEqual({
      command: 'replay',
      queues: LETTER_QUEUES,
      filter: {},
      limit: Infinity,
      dryRun: false,
      rate: 100,
      json: false,
    });
  });

  it('reads every condition', () => {
    const line =
      'drop --yes --service users --kind crashed --publisher p --status crashed --operation users.add.v1 --api-key k --id i --request-id q --reason r --since 2h --until 2026-03-01T11:30:00Z --limit 3 --audit f';
    expect(read(line)).toMatchObject({
      queues: [{ name: 'users.commands.crashed', service: 'users', kind: 'crashed' }],
      filter: {
        status: 'CRASHED',
        operation: 'users.add.v1',
        apiKey: 'k',
        publisher: 'p',
        id: 'i',
        requestId: 'q',
        reason: 'r',
        since: new Date('2026-03-01T10:00:00Z'),
        until: new Date('2026-03-01T11:30:00Z'),
      },
      limit: 3,
      audit: 'f',
    });
  });
});
