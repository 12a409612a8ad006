// npm run dev: npm start, and changes take effect when they are saved. The servers and the services that do not load them go on.
import { createRequire } from 'node:module';
import { UserError } from './checkout/machine.mjs';
import { reportFailure } from './checkout/progress.mjs';
import { ROOT, SERVICES, mainOf } from './checkout/project.mjs';
import { UsageError, commandLine } from './processes/command-line.mjs';
import { runCommand } from './processes/command.mjs';
import { probePort } from './processes/free-port.mjs';
import { runStack } from './stack/run-stack.mjs';

const INSPECTOR = { host: '127.0.0.1', port: 9229 };
/** Nest's account of each start: twenty lines that say the same every time. */
const CHATTER = ['InstanceLoader', 'NestApplication', 'NestFactory', 'NestMicroservice', 'RouterExplorer', 'RoutesResolver'];
const INFO = 30;
const TSC = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--noEmit', '--incremental', 'false', '--watch'];

const { inspect, types } = commandLine(
  {
    command: 'npm run dev --',
    about:
      'Runs the whole system as npm start does. Changes in apps/ and libs/ take effect when they are saved: the services that load them restart.',
    options: {
      inspect: { value: 'SERVICE', help: `this service opens the debugger, on port ${INSPECTOR.port}: ${SERVICES.join(', ')}` },
      types: { help: 'the type checker runs beside it, and prints what it finds' },
    },
    notes: [
      'HOST, PORT, AMQP_URL and DATABASE_URL of the environment say where it listens, and which servers it uses instead of its own.',
    ],
    examples: {
      '': 'on http://localhost:3000',
      '--inspect users': 'to debug the users service',
      '--types': 'to see type errors as well',
    },
  },
  ({ values }) => {
    if (values.inspect && !SERVICES.includes(values.inspect))
      throw new UsageError(`--inspect must be one of ${SERVICES.join(', ')}.`);
    return values;
  },
);

try {
  if (inspect)
    await probePort(INSPECTOR.port, INSPECTOR.host).catch(() => {
      throw new UserError(`Port ${INSPECTOR.port} is taken: another debugger may be waiting there.`);
    });
  await runStack({
    format: formatter(),
    optionsOf: (name) => ({
      program: mainOf(name),
      waitsForChange: true,
      flags: name === inspect ? [`--inspect=${INSPECTOR.host}:${INSPECTOR.port}`] : [],
    }),
    onReady: async (services) => {
      // Only now: they need packages that the start may have had to install.
      const { InnerLoop } = await import('./dev/inner-loop.mjs');
      await new InnerLoop(services).start();
      process.stdout.write('Changes in apps/ and libs/ take effect when they are saved.\n\n');
      if (types)
        void runCommand(process.execPath, [...TSC, '--preserveWatchOutput'], {
          cwd: ROOT,
          stdio: ['ignore', 'inherit', 'inherit'],
        });
    },
  });
} catch (error) {
  reportFailure(error);
  process.exitCode = 1;
}

/**
 * Log lines for people, from when the packages are there. The files in .local/logs keep the JSON.
 * @returns {import('./stack/service-log.mjs').Format}
 */
function formatter() {
  /** @type {((line: string) => string) | undefined} */
  let pretty;
  return (line, entry) => {
    if (!entry) return line;
    if (entry.level === INFO && CHATTER.includes(entry.context ?? '')) return '';
    pretty ??= prettyFormatter();
    return pretty(line);
  };
}

/** @returns {(line: string) => string} */
function prettyFormatter() {
  return createRequire(import.meta.url)('pino-pretty').prettyFactory({
    colorize: process.stdout.isTTY && !process.env.NO_COLOR,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,service',
    singleLine: true,
  });
}
