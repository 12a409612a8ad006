// npm run test:cluster: ends, freezes, separates and restarts the parts of a cluster under load, and prints the longest pauses.
import { ROWS } from '../test/cluster/harness/rows.mjs';
import { chosenRows, runRowSuite } from './checkout/row-suite.mjs';
import { UsageError, commandLine } from './processes/command-line.mjs';

const COLUMNS = [
  'row',
  'adds 200',
  'other adds',
  'gets 200',
  'other gets',
  'pause of adds (s)',
  'pause of gets (s)',
  'recovery (s)',
  'lost',
  'duplicated',
  'unasked',
  'late',
  'figures',
  'missed',
];

const { rows, write, queues, strict } = commandLine(
  {
    command: 'npm run test:cluster --',
    about:
      'Three brokers, two gateways, two users and three notifications processes, a database with a synchronous standby: ends, freezes, separates and restarts them under load.',
    words: { name: 'ROW', help: 'only the rows whose name is or contains it; without one, all' },
    options: {
      queues: { help: 'measures instead how many messages a second one queue carries, and three of them: in three minutes' },
      strict: { help: 'fails when a bound on time is missed; otherwise that is only printed' },
      write: { help: 'writes the figures into docs/cluster-tests.md, with the bounds that were missed' },
    },
    notes: [`Rows:\n${ROWS.map(({ name }) => `  ${name}`).join('\n')}`],
    examples: { '': 'everything, in less than half an hour', 'SIGKILL standby': 'the rows with one of these words' },
  },
  ({ words, values }) => {
    if (values.queues && (values.write || values.strict || words.length > 0))
      throw new UsageError('--queues has no rows and no bounds, and writes nothing.');
    if (values.write && words.length > 0) throw new UsageError('--write is for the full run only.');
    return { rows: chosenRows(ROWS, words), write: values.write, queues: values.queues, strict: values.strict };
  },
);

if (queues)
  await runRowSuite({
    project: 'cluster',
    pattern: 'cluster/queues\\.cluster-spec',
    env: {},
    columns: ['row', 'messages a second', 'commands a second', 'processors in use'],
    missed: (_figures, failed) => failed,
  });

await runRowSuite({
  project: 'cluster',
  pattern: 'cluster/cluster\\.cluster-spec',
  env: { CLUSTER_ROWS: JSON.stringify(rows), CLUSTER_STRICT: String(Boolean(strict)) },
  columns: COLUMNS,
  missed: (figures) => figures.filter((row) => row.missed).length,
  document: write ? { page: 'cluster-tests.md', part: 'cluster' } : undefined,
});
