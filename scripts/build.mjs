// npm run build: dist/apps and dist/libs, and of each service dist/<service>.js, which is what containers run.
import { build } from './checkout/build.mjs';
import { commandLine } from './processes/command-line.mjs';

commandLine(
  { command: 'npm run build --', about: 'Builds everything anew into dist/.', examples: { '': 'everything' } },
  () => undefined,
);
await build();
