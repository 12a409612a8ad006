import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { buildSync } from 'esbuild';
import { UsageError } from './command-line';
import { ToolOutput } from './tool-output';

function written(args: string[], say: (output: ToolOutput) => void) {
  const said = { stdout: '', stderr: '' };
  for (const [method, stream] of [
    ['log', 'stdout'],
    ['error', 'stderr'],
  ] as const)
    jest.spyOn(console, method).mockImplementation((...texts: unknown[]) => {
      said[stream] += `${texts.join(' ')}\n`;
    });
  try {
    say(new ToolOutput(args));
  } finally {
    jest.restoreAllMocks();
  }
  return said;
}

const work = (output: ToolOutput) => {
  output.progress('half');
  output.note('take care');
  output.result({ data: { done: 2 }, lines: ['one', 'two'] });
};

describe('the output of a tool', () => {
  it('is lines for people', () => {
    expect(written([], work)).toEqual({ stdout: 'half\none\ntwo\n', stderr: 'take care\n' });
  });

  it('is one JSON document with --json, and JSON objects on stderr', () => {
    expect(written(['list', '--json'], work)).toEqual({
      stdout: '{"done":2}\n',
      stderr: '{"note":"half"}\n{"note":"take care"}\n',
    });
  });
});

it('makes a tool fail when it is lost, as in a file on a full disk', () => {
  // Set-up has several in one process, and a tool may set its exit code after its last line.
  const contents = `
    import { ToolOutput } from './tool-output';
    const [output] = [new ToolOutput(['--json']), new ToolOutput(['--json'])];
    output.result({ data: { token: 'x' }, lines: [] });
    setTimeout(() => (process.exitCode = 0));`;
  const options = { bundle: true, platform: 'node', write: false } as const;
  const program = buildSync({ stdin: { contents, resolveDir: __dirname }, ...options }).outputFiles[0].text;
  const takesNothing = openSync(__filename, 'r');
  const { status, stderr } = spawnSync(process.execPath, ['-e', program], {
    stdio: ['ignore', takesNothing, 'pipe'],
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([1, '{"error":"The output cannot be written: EBADF."}\n']);
});

describe('the failure of a tool', () => {
  afterEach(() => {
    process.exitCode = undefined;
  });

  it.each([
    [[], new UsageError('A command is missing.'), 2, 'A command is missing. See npm run keys -- --help\n'],
    [[], new Error('secret'), 1, 'It cannot be done.\n'],
    [['--json'], new UsageError('No "x".'), 2, '{"error":"No \\"x\\". See npm run keys -- --help"}\n'],
    [['--json'], new Error('secret'), 1, '{"error":"It cannot be done."}\n'],
  ])('is said on stderr, with its exit code: %j %s', (args, error, code, stderr) => {
    expect(written(args, (output) => output.failure('keys', error, () => 'It cannot be done.'))).toEqual({ stdout: '', stderr });
    expect(process.exitCode).toBe(code);
  });
});
