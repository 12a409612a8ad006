// npm start: the whole system in the foreground, from a fresh clone.
import { commandLine } from './processes/command-line.mjs';
import { runStack } from './stack/run-stack.mjs';
import { everything } from './stack/service-log.mjs';

const { verbose, operator } = commandLine(
  {
    command: 'npm start --',
    about: 'Runs the whole system in the foreground, with a broker and a database of its own. Everything it starts ends with it.',
    options: {
      verbose: { help: 'every line that the services log, instead of warnings and errors' },
      operator: { help: "the operator's page as well, on port 3001 or OPERATOR_PORT: docs/operator.md" },
    },
    notes: [
      'HOST, PORT, AMQP_URL and DATABASE_URL of the environment say where it listens, and which servers it uses instead of its own.',
    ],
    examples: { '': 'on http://localhost:3000', '--verbose': 'to see each call', '--operator': 'to look at it in a browser' },
  },
  ({ values }) => values,
);

await runStack({ operator, format: verbose || process.env.LOG_LEVEL ? everything : undefined });
