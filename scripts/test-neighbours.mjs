// npm run test:neighbours: a tenant that does no harm, and beside it, one after the other, everything that somebody else may do to it.
import { ROWS } from '../test/neighbours/attacks/all.mjs';
import { chosenRows, runRowSuite } from './checkout/row-suite.mjs';
import { UsageError, commandLine, wholeNumber } from './processes/command-line.mjs';

const COLUMNS = [
  'attack',
  'why',
  'offered',
  'asked',
  'not 200',
  'add p99 (ms)',
  'get p99 (ms)',
  'as measured (ms)',
  'machine (ms)',
  'client late (ms)',
  'events p99 (ms)',
  'removals: median, longest (ms)',
  'most memory (MiB)',
  'broker: memory, disk (MiB)',
  'recovery (s)',
  'failed',
];

const { rows, write } = commandLine(
  {
    command: 'npm run test:neighbours --',
    about: 'A tenant that does no harm, and beside it, one after the other, everything that somebody else may do to it.',
    words: { name: 'ROW', help: 'only the rows whose name is or contains it; without one, all' },
    options: {
      seconds: { value: 'N', help: 'how long each row takes: a few show which of them fail' },
      write: { help: 'writes the figures into docs/neighbours.md, with the bounds that were missed' },
    },
    notes: [`Rows:\n${ROWS.map(({ name }) => `  ${name}`).join('\n')}`],
    examples: { '': 'everything, in half an hour', 'heavy stuck --seconds 8': 'two kinds of rows, in short' },
  },
  ({ words, values }) => {
    if (values.write && (words.length > 0 || values.seconds)) throw new UsageError('--write is for the full run only.');
    const seconds = values.seconds && { seconds: wholeNumber('--seconds', values.seconds, 3600) };
    return { rows: chosenRows(ROWS, words).map((row) => ({ ...row, ...seconds })), write: values.write };
  },
);

await runRowSuite({
  project: 'neighbours',
  pattern: 'neighbours\\.neighbours-spec',
  env: { NEIGHBOUR_ROWS: JSON.stringify(rows) },
  columns: COLUMNS,
  complete: (row) => ({ ...row, why: ROWS.find(({ name }) => name === row.attack)?.why }),
  missed: (_figures, failed) => failed,
  document: write ? { page: 'neighbours.md', part: 'neighbours' } : undefined,
});
