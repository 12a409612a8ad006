import { execFileSync } from 'node:child_process';
import { buildSync } from 'esbuild';
import { mostConnections } from './most-connections';

const PROGRAM = buildSync({
  stdin: {
    contents: `import { mostConnections } from './most-connections'; console.log(mostConnections(10_000));`,
    resolveDir: __dirname,
  },
  bundle: true,
  platform: 'node',
  write: false,
}).outputFiles[0].text;

describe(mostConnections.name, () => {
  it('is what is wanted, where the process may open so many files', () => expect(mostConnections(100)).toBe(100));

  it.each([
    [1000, 744],
    [100, 1],
  ])('of a process that may open %i files leaves room for others', (files, connections) => {
    const output = execFileSync('bash', ['-c', `ulimit -n ${files}; exec "$0" -e "$1"`, process.execPath, PROGRAM], {
      encoding: 'utf8',
    });
    // Elsewhere nothing says how many.
    expect(Number(output)).toBe(process.platform === 'linux' ? connections : 10_000);
  });
});
