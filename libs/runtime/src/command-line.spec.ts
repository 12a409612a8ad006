import { readArguments, readOptions, UsageError, wholeNumber } from './command-line';

const TOOL = {
  options: { name: 'value', json: 'switch' },
  commands: { create: ['name', 'json'], list: ['json'] },
} as const;
const read = (line: string) => readArguments(TOOL, line.split(' ').filter(Boolean));

describe('the command line of a tool', () => {
  it('is a command, words and options in any order', () => {
    expect(read('--json create one --name=two three')).toEqual({
      command: 'create',
      words: ['one', 'three'],
      values: { json: true, name: 'two' },
    });
  });

  it.each(['--help', '-h', 'create --help', 'nonsense --nonsense -h'])('asks for help with %j', (line) => {
    expect(read(line)).toBeUndefined();
  });

  it('takes words for what they are after two hyphens', () => {
    expect(read('create -- --help')?.words).toEqual(['--help']);
  });

  it('takes an empty value that is meant', () => {
    expect(read('create --name=')?.values).toEqual({ name: '' });
  });

  it.each([
    ['A command is missing; there are: create, list.', '--json'],
    ['There is no command toString; there are: create, list.', 'toString'],
    ['There is no command creat; did you mean create?', 'creat'],
    ['list has no option --jsno; did you mean --json?', 'list --jsno'],
    ['list has no option --name; there are: --json, --help.', 'list --name x'],
    ['list has no option -j; there are: --json, --help.', 'list -j'],
    ['--name needs a value.', 'create --name'],
    ['--name needs a value.', 'create --name --json'],
    ['--json takes no value.', 'list --json=yes'],
    ['--name is given twice.', 'create --name one --name=two'],
  ])('is refused with %j: %j', (message, line) => {
    expect(() => read(line)).toThrow(new UsageError(message));
  });

  it('may be without a command', () => {
    const without = (...args: string[]) => readOptions('doctor', { json: 'switch' } as const, args);
    expect(without('one', '--json')).toEqual({ words: ['one'], values: { json: true } });
    expect(without('--help')).toBeUndefined();
    expect(() => without('--jsno')).toThrow(new UsageError('doctor has no option --jsno; did you mean --json?'));
  });

  it.each(['0', '01', '1.5', '11', 'ten', ''])('has no whole number from 1 to 10 in %j', (text) => {
    expect(() => wholeNumber('--limit', text, 10)).toThrow(new UsageError('--limit must be a whole number from 1 to 10.'));
    expect(wholeNumber('--limit', '10', 10)).toBe(10);
  });
});
