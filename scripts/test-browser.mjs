// npm run test:browser: pages in a headless Chromium, with real clicks on a real system.
import { join } from 'node:path';
import { ROOT } from './checkout/project.mjs';
import { report } from './checkout/progress.mjs';
import { runSuite } from './checkout/suite.mjs';
import { commandLine } from './processes/command-line.mjs';
import { findProgram, needProgram } from './programs/packages.mjs';

const pictures = commandLine(
  {
    command: 'npm run test:browser --',
    about: 'Opens pages in a headless Chromium, with real clicks on a real system.',
    options: { pictures: { help: 'writes the pictures of docs/operator.md, from a minute under load' } },
    notes: ['SCREENSHOTS names a folder for pictures of the pages. It takes two minutes.'],
    examples: { '': 'everything', '--pictures': "after a change of the operator's page" },
  },
  ({ values }) => values.pictures,
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
    return { TEST_CHROMIUM: findProgram('chromium'), ...(pictures && { OPERATOR_PICTURES: join(ROOT, 'docs/operator') }) };
  },
});
