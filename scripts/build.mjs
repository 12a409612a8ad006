// npm run build: dist/apps and dist/libs, and of each service dist/<service>.js, which is what containers run.
import { orEnd, rebuild } from './checkout/prepare.mjs';
import { commandLine } from './processes/command-line.mjs';

commandLine({ command: 'npm run build --', about: 'Builds everything anew into dist/.', examples: { '': 'everything' } });
await orEnd(rebuild);
