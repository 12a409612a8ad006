// npm run bench
import { checkMachine } from '../scripts/lib/machine.mjs';
import { endCommands } from '../scripts/lib/command.mjs';
import { watchParent } from '../scripts/lib/parent.mjs';
import { prepare } from '../scripts/lib/prepare.mjs';
import { report, reportFailure, stage } from '../scripts/lib/progress.mjs';
import { buildPlain } from './lib/build-plain.mjs';
import { Laboratory } from './lib/laboratory.mjs';
import * as add from './rows/add.mjs';

const laboratory = new Laboratory();
let leaving = false;
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => void leave(130));
watchParent(() => void leave(1));
try {
  checkMachine();
  await prepare();
  await buildPlain();
  await stage('starting RabbitMQ and PostgreSQL', () => laboratory.open());
  report(add.title);
  console.dir(await add.run(laboratory, { rounds: 5, seconds: 4 }), { depth: 5 });
  await leave(0);
} catch (error) {
  if (!leaving) reportFailure(error);
  await leave(1);
}

async function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  await laboratory.close();
  process.exit(code);
}
