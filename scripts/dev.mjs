// npm run dev: npm start, and what is saved runs a moment later. The servers and the services that do not load it go on.
//   npm run dev -- --inspect users   this service opens the debugger, on port 9229
//   npm run dev -- --types           the type checker runs beside it, and prints what it finds
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { UserError } from './checkout/machine.mjs';
import { reportFailure } from './checkout/progress.mjs';
import { ROOT, SERVICES } from './checkout/project.mjs';
import { runCommand } from './processes/command.mjs';
import { probePort } from './processes/free-port.mjs';
import { runStack } from './stack/run-stack.mjs';

const INSPECTOR = { host: '127.0.0.1', port: 9229 };
/** Nest's account of each start: twenty lines that say the same every time. */
const CHATTER = ['InstanceLoader', 'NestApplication', 'NestFactory', 'NestMicroservice', 'RouterExplorer', 'RoutesResolver'];
const INFO = 30;
const TSC = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--noEmit', '--incremental', 'false', '--watch'];

try {
  const { inspect, types } = await readArguments();
  await runStack({
    format: formatter(),
    optionsOf: (name) => ({
      waitsForChange: true,
      flags: name === inspect ? [`--inspect=${INSPECTOR.host}:${INSPECTOR.port}`] : [],
    }),
    onReady: async (services) => {
      // Only now: they need packages that the start may have had to install.
      const { InnerLoop } = await import('./dev/inner-loop.mjs');
      await new InnerLoop(services).start();
      process.stdout.write('What you save in apps/ and libs/ runs a moment later.\n\n');
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

async function readArguments() {
  const options = { inspect: { type: 'string' }, types: { type: 'boolean', default: false } };
  let values;
  try {
    ({ values } = parseArgs({ options }));
    if (values.inspect && !SERVICES.includes(values.inspect)) throw new Error(`--inspect takes one of ${SERVICES.join(', ')}.`);
  } catch (error) {
    throw new UserError(error.message);
  }
  if (values.inspect)
    await probePort(INSPECTOR.port, INSPECTOR.host).catch(() => {
      throw new UserError(`Port ${INSPECTOR.port} is taken: another debugger may be waiting there.`);
    });
  return values;
}

/** Log lines for people, from when the packages are there. The files in .local/logs keep the JSON. */
function formatter() {
  let pretty;
  return (line, entry) => {
    if (!entry) return line;
    if (entry.level === INFO && CHATTER.includes(entry.context)) return '';
    pretty ??= createRequire(import.meta.url)('pino-pretty').prettyFactory({
      colorize: process.stdout.isTTY && !process.env.NO_COLOR,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'pid,service',
      singleLine: true,
    });
    return pretty(line);
  };
}
