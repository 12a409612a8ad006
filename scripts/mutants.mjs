// Whether the fault suite notices: breaks one promise at a time in a copy of this checkout, and runs the test that has to fail then.
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './checkout/project.mjs';
import { commandLine, unknown } from './processes/command-line.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';

const COPIED = [
  'apps',
  'libs',
  'scripts',
  'test',
  // The gateway serves these documents.
  'docs',
  'openapi.json',
  'asyncapi.json',
  'package.json',
  'package-lock.json',
  'nest-cli.json',
  '.swcrc',
  'tsconfig.json',
];
const INSERTS = 'apps/notifications/src/db/insert-notifications.sql.ts';
const READINGS = 'apps/notifications/src/db/readings.sql.ts';
const SERVER = 'libs/rabbitmq/src/server/rabbit.server.ts';
const BACKLOG = 'commands that nobody waits for';

/**
 * Each edit, of a file, replaces the first text by the second; the test is a file, and a part of a name in it.
 * @typedef {{ name: string, edits: string[][], test: string[] }} Mutant
 * @type {Mutant[]}
 */
const MUTANTS = [
  {
    name: 'conflict clause removed',
    edits: [[INSERTS, '    ON CONFLICT (organization, id) DO NOTHING\n', '']],
    test: ['repetition', 'one effect, and the same answer'],
  },
  {
    name: 'ack before commit',
    edits: [
      [SERVER, 'const outcome = await', 'delivery.ack();\n      const outcome = await'],
      ['libs/rabbitmq/src/settle/settlement.ts', 'delivery.ack();', ''],
    ],
    test: ['short', BACKLOG],
  },
  {
    name: 'auto-ack',
    edits: [
      [
        'libs/rabbitmq/src/delivery/queue-consumer.ts',
        'closeQuietly(channel);\n    });',
        'closeQuietly(channel);\n    }, { noAck: true });',
      ],
      ['libs/rabbitmq/src/settle/settlement.ts', 'delivery.ack();', ''],
    ],
    test: ['short', BACKLOG],
  },
  {
    name: 'no mandatory',
    edits: [
      [
        'libs/amqp/src/publisher.ts',
        '{ exchange, routingKey, mandatory }, properties, body, onConfirm',
        '{ exchange, routingKey, mandatory: false && mandatory }, properties, body, onConfirm',
      ],
    ],
    test: ['broker', 'queue of commands deleted'],
  },
  {
    name: 'no deadline check',
    edits: [
      ['libs/rabbitmq/src/server/handler-runner.ts', 'if (delivery.isExpired)', 'if (false as boolean)'],
      [INSERTS, '(t.deadline IS NULL OR moment.latest_end <= t.deadline + 500)', 'true'],
      ['apps/notifications/src/writer/notification-writer.ts', 'leaders.has(identity) || left < 0', 'leaders.has(identity)'],
    ],
    test: ['pauses', 'SIGSTOP of both writers'],
  },
  {
    name: 'no suspects',
    edits: [['libs/rabbitmq/src/delivery/delivery.ts', 'count >= SUSPECT_AFTER', 'count >= Infinity']],
    test: ['poison', 'among 1000 good ones'],
  },
  {
    name: 'tenant left out of a WHERE',
    edits: [
      [
        'apps/notifications/src/db/pages.repository.ts',
        'WHERE o.api_key = ${use(filter.apiKey)} AND o.organization_id = ${use(filter.organizationId)})',
        'WHERE o.organization_id = ${use(filter.organizationId)} ORDER BY o.id LIMIT 1)',
      ],
    ],
    test: ['short', 'SIGKILL of a writer, 3 times, at'],
  },
  {
    name: 'a blocked broker is not noticed',
    edits: [['libs/amqp/src/channel.ts', "if (state === 'blocked')", 'if (false as boolean)']],
    test: ['broker', 'memory alarm'],
  },
  {
    name: 'a nack is taken for a confirm',
    edits: [['libs/amqp/src/publisher.ts', "nacked ? 'nacked'", "nacked ? 'confirmed'"]],
    test: ['broker', 'queue of commands full'],
  },
  {
    name: 'silence is not noticed',
    edits: [['libs/amqp/src/open-connection.ts', 'const MOST_SILENCE_S = 8;', 'const MOST_SILENCE_S = 800;']],
    test: ['links', 'until they are found'],
  },
  {
    name: 'a removal without its event',
    edits: [['apps/users/src/db/remove-members.sql.ts', 'FROM removed HAVING count(*) > 0', 'FROM removed HAVING false']],
    test: ['memberships', 'their copy is right'],
  },
  {
    name: 'an addition without its version',
    edits: [['apps/users/src/db/add-members.sql.ts', "'membership', membership", "'membership', NULL"]],
    test: ['memberships', 'their copy is right'],
  },
  {
    name: 'all read up to now',
    edits: [[READINGS, 'least(statement_timestamp(), min(xact_start))', 'statement_timestamp()']],
    test: ['read-state', 'marked as read, 200 times'],
  },
  {
    name: 'all read up to 10 s ago',
    edits: [[READINGS, 'least(statement_timestamp(), min(xact_start))', "statement_timestamp() - interval '10 s'"]],
    test: ['read-state', 'lost standby'],
  },
  {
    name: 'a removal that a redelivery repeats',
    edits: [['apps/users/src/commands/answer-key.ts', 'key: messageId }', 'key: `${messageId} ${Math.random()}` }']],
    test: ['redelivery', 'users/delete, then users/add'],
  },
  {
    name: 'a deletion that a redelivery repeats',
    edits: [['apps/notifications/src/db/first-run.sql.ts', 'SET moment = d.moment', 'SET moment = excluded.moment']],
    test: ['redelivery', 'of a document'],
  },
  {
    name: 'all read once more by a redelivery',
    edits: [
      ['apps/notifications/src/db/readings.repository.ts', 'await this.firstMoment(update, moment.now)', 'Number(moment.now)'],
    ],
    test: ['redelivery', 'read up to'],
  },
  {
    name: 'an erasure that only the process of its call goes on with',
    edits: [['apps/users/src/main.ts', '    erasures.start();\n', '']],
    test: ['erasure', 'leaves no trace'],
  },
  {
    name: 'an erasure in all tenants',
    edits: [
      ['apps/notifications/src/db/erasure.sql.ts', 'o.api_key = $1 AND o.organization_id >= $3', 'o.organization_id >= $3'],
    ],
    test: ['erasure', 'leaves no trace'],
  },
  {
    name: 'the end of an erasure without a wait',
    edits: [['apps/notifications/src/db/erasure-steps.ts', 'EVENT_MEMORY_MS + LONGEST_PUBLICATION_MS + 1000', '0']],
    test: ['erasure', 'held between commit and publish'],
  },
];

const chosen = commandLine(
  {
    command: 'npm run test:mutants --',
    about: 'Breaks one promise at a time in a copy of this checkout, and runs the fault test that has to fail then.',
    words: { name: 'PART', help: 'only the mutants with it in their names, see below; without one, all', most: 1 },
    notes: [`Mutants:\n${MUTANTS.map(({ name }) => `  ${name}`).join('\n')}`],
    examples: { '': 'all of them', 'auto-ack': 'one of them' },
  },
  ({ words: [part = ''] }) => {
    const found = MUTANTS.filter(({ name }) => name.includes(part));
    if (found.length === 0)
      throw unknown(
        'mutant',
        part,
        MUTANTS.map(({ name }) => name),
      );
    return found;
  },
);
let survivors = 0;
for (const mutant of chosen) {
  const { caught, output } = run(mutant);
  if (!caught) survivors++;
  process.stdout.write(`${caught ? 'caught  ' : 'SURVIVED'}  ${mutant.name}: ${mutant.test.join(', ')}\n`);
  if (!caught) process.stdout.write(`${output}\n`);
}
process.exit(survivors > 0 ? 1 : 0);

/** @param {Mutant} mode */
function run({ edits, test: [file, title] }) {
  const copy = temporaryDirectory('mutant');
  try {
    for (const path of [...COPIED, 'jest.config.cjs']) cpSync(join(ROOT, path), join(copy.path, path), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy.path, 'node_modules'));
    for (const [path, from, to] of edits) {
      const source = readFileSync(join(copy.path, path), 'utf8');
      if (!source.includes(from)) throw new Error(`${path} does not contain: ${from}`);
      writeFileSync(
        join(copy.path, path),
        source.replace(from, () => to),
      );
    }
    /** @param {string[]} args */
    const node = (...args) => spawnSync(process.execPath, args, { cwd: copy.path, encoding: 'utf8' });
    const built = node('node_modules/@nestjs/cli/bin/nest.js', 'build', '--all');
    if (built.status !== 0) throw new Error(`The mutant does not build:\n${built.stdout}${built.stderr}`);
    const jest = join('node_modules', 'jest', 'bin', 'jest.js');
    const { status, stderr } = node(
      jest,
      '--selectProjects',
      'faults',
      '--runInBand',
      '--forceExit',
      '--testPathPatterns',
      file,
      '-t',
      title,
    );
    // Where the system did not start, all the same, the test has not looked: what it found carries a seed.
    return { caught: status !== 0 && /Tests: .*1 failed/.test(stderr) && /FAULT_SEED|"seed"/.test(stderr), output: stderr };
  } finally {
    copy.remove();
  }
}
