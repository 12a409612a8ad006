// npm run test:browser: pages in a headless Chromium, with real clicks on a real system.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { UserError } from './checkout/machine.mjs';
import { report } from './checkout/progress.mjs';
import { runSuite } from './checkout/suite.mjs';
import { commandLine } from './processes/command-line.mjs';
import { runQuietly } from './processes/command.mjs';
import { canInstall } from './servers/rabbitmq-program.mjs';

const INSTALLER = fileURLToPath(new URL('./servers/chromium-install.sh', import.meta.url));

commandLine(
  {
    command: 'npm run test:browser --',
    about: 'Opens pages in a headless Chromium, with real clicks on a real system.',
    notes: ['SCREENSHOTS names a folder for pictures of the pages. It takes less than a minute.'],
    examples: { '': 'everything' },
  },
  () => undefined,
);

const hasChromium = () => spawnSync('chromium', ['--version'], { stdio: 'ignore' }).status === 0;

await runSuite({
  project: 'browser',
  before: async () => {
    if (hasChromium()) return;
    if (canInstall()) {
      report('installing Chromium with apt-get (once)');
      await runQuietly('sh', [INSTALLER], { name: 'The installation of Chromium', mayOutliveUs: true });
      if (hasChromium()) return;
    }
    throw new UserError('This needs Chromium, and it was not found. On Debian: apt-get install chromium');
  },
});
