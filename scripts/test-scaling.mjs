// npm run test:scaling: a load for which one notification writer is too slow, and the number of writers that the manifests ask for.
import { orEnd } from './checkout/prepare.mjs';
import { runRowSuite } from './checkout/row-suite.mjs';
import { report } from './checkout/progress.mjs';
import { overlayManifests } from './manifests/overlays.mjs';
import { mostWriters } from './manifests/scaling.mjs';
import { commandLine } from './processes/command-line.mjs';
import { needPrometheus } from './servers/prometheus.mjs';

/** Room for four writers. */
const MAX_CONNECTIONS = 110;
/** The loads of the test are chosen for one writer. */
const FEWEST = 1;

commandLine({
  command: 'npm run test:scaling --',
  about:
    'Asks RabbitMQ and a Prometheus as the ScaledObject of deploy/kubernetes says, starts and stops notification writers as KEDA would, and prints each look.',
  notes: ['It takes six minutes.'],
  examples: { '': 'everything' },
});

await orEnd(() => needPrometheus(report));
const scaled = overlayManifests('production').find(({ kind }) => kind === 'ScaledObject');
const maxReplicaCount = mostWriters({ maxConnections: MAX_CONNECTIONS, users: 1, readers: 1 });
const object = { ...scaled?.spec, minReplicaCount: FEWEST, maxReplicaCount };
await runRowSuite({
  project: 'scaling',
  pattern: 'writers\\.scaling-spec',
  env: { SCALING: JSON.stringify({ object, maxConnections: MAX_CONNECTIONS }) },
  columns: ['second', 'commands a second', 'backlog', 'age (s)', 'asked for', 'writers', 'connections', 'result'],
  missed: (_figures, failed) => failed,
});
