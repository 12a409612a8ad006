import { Script } from './script';

/** Runs a script with each of some command lines, in one process: what ends it ends the case. */
const PROGRAM = `
  import { UsageError, commandLine } from './scripts/processes/command-line.mjs';
  const [more, ...cases] = JSON.parse(process.argv[1]);
  const table = {
    command: 'npm run paint --',
    about: 'Paints things.',
    options: { colour: { value: 'NAME', help: 'which one' }, dry: { help: 'says what it would do' } },
    notes: ['Paint dries.'],
    examples: { '': 'everything', 'door --dry': 'nothing' },
    ...more,
  };
  const { stdout, stderr } = process;
  const print = stdout.write.bind(stdout);
  const outcomes = cases.map((args) => {
    const outcome = { stdout: '', stderr: '' };
    stdout.write = (text) => ((outcome.stdout += text), true);
    stderr.write = (text) => ((outcome.stderr += text), true);
    process.exit = (code) => {
      outcome.code = code;
      throw outcome;
    };
    process.argv = ['node', 'script', ...args.split(' ').filter(Boolean)];
    try {
      outcome.read = commandLine(table, ({ words, values }) => {
        if (values.dry && values.colour) throw new UsageError('--dry has no colour.');
        return { words, values };
      });
    } catch (error) {
      if (error !== outcome) throw error;
    }
    return outcome;
  });
  print(JSON.stringify(outcomes) + '\\n');
`;
const THINGS = { words: { name: 'THING', help: 'what to paint:', known: ['door', 'fence', 'wall'], most: 2 } };

interface Outcome {
  stdout: string;
  stderr: string;
  /** Absent when it went on. */
  code?: number;
  read?: unknown;
}

async function outcomes(more: object, ...cases: string[]): Promise<Outcome[]> {
  return (await new Script(PROGRAM, [JSON.stringify([more, ...cases])]).next()) as Outcome[];
}

const READ = {
  '': { words: [], values: {} },
  'door --colour red wall': { words: ['door', 'wall'], values: { colour: 'red' } },
  '--colour=-1': { words: [], values: { colour: '-1' } },
  '--dry -- door': { words: ['door'], values: { dry: true } },
};
const REFUSED = {
  '--colur red': 'There is no option --colur; did you mean --colour?',
  '--rdy': 'There is no option --rdy; did you mean --dry?',
  '--force': 'There is no option --force; there are: --colour, --dry, --help.',
  '-d': 'There is no option -d; there are: --colour, --dry, --help.',
  dor: 'There is no THING dor; did you mean door?',
  roof: 'There is no THING roof; there are: door, fence, wall.',
  'door fence wall': '"wall" is one word too many.',
  '--colour': '--colour needs a value: --colour NAME.',
  '--colour --dry': '--colour needs a value: --colour NAME.',
  '--dry=yes': '--dry takes no value.',
  '--colour red --colour=blue': '--colour is given twice.',
  '--dry --colour red': '--dry has no colour.',
};

afterEach(() => Script.endAll());

describe('the command line of a script', () => {
  it('is words and options in any order', async () => {
    const expected = Object.values(READ).map((read) => ({ stdout: '', stderr: '', read }));
    expect(await outcomes(THINGS, ...Object.keys(READ))).toEqual(expected);
  });

  it('is refused in one line, with exit code 2', async () => {
    const refused = Object.values(REFUSED).map((message) => ({
      stdout: '',
      stderr: `${message} See npm run paint -- --help\n`,
      code: 2,
    }));
    expect(await outcomes(THINGS, ...Object.keys(REFUSED))).toEqual(refused);
  });

  it('is refused as JSON when the result is wanted as JSON, and the script has that', async () => {
    const [json] = await outcomes({ options: { json: { help: '' } } }, '--json --force');
    const error = 'There is no option --force; there are: --json, --help. See npm run paint -- --help';
    expect(json).toEqual({ stdout: '', stderr: `${JSON.stringify({ error })}\n`, code: 2 });
    const [text] = await outcomes(THINGS, '--json');
    expect(text?.stderr).toMatch(/^There is no option --json/);
  });

  it('says which word is missing, and that a script without words takes none', async () => {
    const [missing] = await outcomes({ words: { name: 'VERSION', help: '', least: 1 } }, '');
    expect(missing).toMatchObject({ code: 2, stderr: 'VERSION is missing. See npm run paint -- --help\n' });
    const [stray] = await outcomes({}, 'door');
    expect(stray).toMatchObject({ code: 2, stderr: '"door" is one word too many. See npm run paint -- --help\n' });
  });

  it('helps, with examples, whatever else is there', async () => {
    const [{ code, stdout, stderr }] = await outcomes(THINGS, 'roof --force -h');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`Paints things.

Usage: npm run paint -- [THING ...] [--colour NAME] [--dry]

  THING           what to paint:
                  door, fence, wall
  --colour NAME   which one
  --dry           says what it would do
  --help          this text

Paint dries.

Exit codes: 0 done, 1 failed, 2 wrong usage.

Examples:
  npm run paint                 everything
  npm run paint -- door --dry   nothing
`);
  });

  it('passes on what is for another program, and helps only when it is asked first', async () => {
    const [passed, help] = await outcomes({ passedOn: 'Jest' }, 'door --force --help', '--help');
    expect(passed.read).toEqual({ words: ['door', '--force', '--help'], values: {} });
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('[ARGUMENT OF JEST ...]') as string });
  });
});
