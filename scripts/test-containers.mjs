// npm run test:containers: the image, the compose file and the rendered pods, on a Docker engine.
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { runSuite } from './checkout/suite.mjs';
import { ROOT } from './checkout/project.mjs';
import { orEnd } from './checkout/prepare.mjs';
import { report } from './checkout/progress.mjs';
import { needEngine, needImages } from './containers/engine.mjs';
import { tableOf } from './docs/table.mjs';
import { commandLine } from './processes/command-line.mjs';
import { runQuietly } from './processes/command.mjs';
import { startReaper } from './processes/reaper.mjs';
import { dockerVariables } from './servers/rabbitmq/container.mjs';

const REMOVE = fileURLToPath(new URL('./containers/remove.sh', import.meta.url));

commandLine({
  command: 'npm run test:containers',
  about:
    'Builds the image, runs it as the compose file and the manifests say, and scales, kills, stops and replaces its containers under load.',
  notes: [
    'It needs a Docker engine and docker compose. Where their registry cannot be reached, NODE_IMAGE, RABBITMQ_IMAGE and POSTGRES_IMAGE name other images.',
  ],
  examples: { '': 'everything' },
});

/** Part of the name of every container, network, volume and image of this run. */
const run = `collaboration-test-${randomBytes(4).toString('hex')}`;
/** Two images that differ in a label only. */
const images = { TEST_IMAGE: `${run}:one`, TEST_NEXT_IMAGE: `${run}:two` };

/** @type {Record<string, string>} */
let bases = {};
await orEnd(async () => {
  await needEngine();
  bases = await needImages(report);
});
await runSuite({
  project: 'containers',
  before: async () => {
    // The tests remove what they start. This is for the images, and for tests that were ended.
    startReaper('sh "$REMOVE" "$RUN"', { ...dockerVariables(), REMOVE, RUN: run });
    report('building the image ...');
    await build(images.TEST_IMAGE, '1');
    await build(images.TEST_NEXT_IMAGE, '2');
    return { TEST_RUN: run, ...images, ...bases };
  },
  after: (rows) => process.stdout.write(`\n${tableOf(['row', 'figure'], rows)}\n`),
});

/** @param {string} image @param {string} revision */
async function build(image, revision) {
  const files = ['--env-file', '/dev/null', '--file', 'docker-compose.yml', '--file', 'test/containers/compose.yml'];
  await runQuietly('docker', ['compose', ...files, 'build', '--build-arg', `REVISION=${revision}`, 'setup'], {
    name: 'docker compose build',
    cwd: ROOT,
    env: { ...process.env, ...images, ...bases, TEST_IMAGE: image },
  });
}
