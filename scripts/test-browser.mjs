// npm run test:browser: pages in a headless Chromium, with real clicks on a real system.
import { report } from './checkout/progress.mjs';
import { runSuite } from './checkout/suite.mjs';
import { commandLine } from './processes/command-line.mjs';
import { findProgram, needProgram } from './servers/packages.mjs';

commandLine(
  {
    command: 'npm run test:browser --',
    about: 'Opens pages in a headless Chromium, with real clicks on a real system.',
    notes: ['SCREENSHOTS names a folder for pictures of the pages. It takes less than a minute.'],
    examples: { '': 'everything' },
  },
  () => undefined,
);

await runSuite({
  project: 'browser',
  before: async () => {
    await needProgram(
      {
        name: 'Chromium',
        has: () => findProgram('chromium') !== undefined,
        packages: ['chromium'],
        missing: 'This needs Chromium, and it was not found. On Debian: apt-get install chromium',
      },
      report,
    );
    return { TEST_CHROMIUM: findProgram('chromium') };
  },
});
