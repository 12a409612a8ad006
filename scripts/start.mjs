// npm start: the whole system in the foreground, from a fresh clone.
import { parseArgs } from 'node:util';
import { runStack } from './stack/run-stack.mjs';
import { everything } from './stack/service-log.mjs';

const { values } = parseArgs({ options: { verbose: { type: 'boolean', default: false } } });
await runStack({ format: values.verbose || process.env.LOG_LEVEL ? everything : undefined });
