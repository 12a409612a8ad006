import { readFileSync } from 'node:fs';
import { Script } from './script';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

// The checks ask the configuration classes, so they need the build: dist/libs and dist/apps.
const PROGRAM = `
  import { readFileSync } from 'node:fs';
  import { OVERLAYS, manifestsOf, overlayManifests } from './scripts/manifests/overlays.mjs';
  import { manifestProblems } from './scripts/manifests/problems.mjs';
  import { typeProblems } from './scripts/manifests/types.mjs';
  const project = JSON.parse(readFileSync('package.json', 'utf8'));
  const all = Object.fromEntries(OVERLAYS.map((overlay) => [overlay, overlayManifests(overlay).map((one) => JSON.stringify(one))]));
  const changed = (overlay, from, to) => {
    const at = all[overlay].findIndex((text) => text.includes(from));
    if (at < 0) throw new Error('nothing has ' + from);
    return { at, manifests: all[overlay].map((text, index) => JSON.parse(index === at ? text.replace(from, to) : text)) };
  };
  const [cases, misspelt] = JSON.parse(process.argv[1]);
  const typed = misspelt.map(([, overlay, from, to]) => {
    const { at, manifests } = changed(overlay, from, to);
    return manifests[at];
  });
  const found = await typeProblems({ changed: typed });
  console.log(JSON.stringify([
    ...cases.map(([, overlay, from, to]) => manifestProblems(changed(overlay, from, to).manifests, project)),
    ...misspelt.map(() => found),
  ]));
`;

type Overlay = 'try-out' | 'production';
type Case = [name: string, overlay: Overlay, from: string, to: string, problem: RegExp];

const CASES: Case[] = [
  [
    'an unknown variable',
    'production',
    'SHUTDOWN_DELAY_MS',
    'SHUTDOWN_DELAY',
    /gateway: it does not know the variable SHUTDOWN_DELAY$/,
  ],
  [
    'a missing required variable',
    'production',
    '"name":"GATEWAY_AMQP_URL_FILE"',
    '"name":"LOG_LEVEL"',
    /GATEWAY_AMQP_URL is required/,
  ],
  ['a value that its process refuses', 'try-out', 'queries,events', 'queries,evens', /NOTIFICATIONS_QUEUES must be/],
  ['a host that no Service has', 'try-out', 'http://rabbitmq:15672', 'http://rabbit:15672', /no Service is called rabbit$/],
  [
    'a port that its Service lacks',
    'try-out',
    'http://rabbitmq:15672',
    'http://rabbitmq:15671',
    /Service rabbitmq has no port 15671/,
  ],
  [
    'a broker that no Service has',
    'production',
    'rabbitmq-server-2.',
    'rabbitmq-server-3.',
    /no Service is called rabbitmq-server-3\.rabbitmq-nodes$/,
  ],
  [
    'a broker that the URL of a process lacks',
    'production',
    'rabbitmq-server-1.rabbitmq-nodes:5672,',
    '',
    /Secret gateway-broker: its URL lacks rabbitmq-server-1\.rabbitmq-nodes$/,
  ],
  [
    'a Secret that the Messaging Topology Operator refuses',
    'production',
    '"rabbitmq.com/topology-operator":"true"',
    '"rabbitmq.com/operator":"true"',
    /User gateway: Secret gateway-broker has no label rabbitmq\.com\/topology-operator$/,
  ],
  [
    'a Secret whose new password is not noticed',
    'production',
    '"cnpg.io/reload":"true"',
    '"cnpg.io/load":"true"',
    /Cluster postgres: Secret users-database has no label cnpg\.io\/reload$/,
  ],
  ['a host in a Secret of the script', 'production', '@postgres-rw:5432', '@postgres:5432', /no Service is called postgres$/],
  [
    'another tag of the own image',
    'production',
    `backend:${version}`,
    'backend:0.0.9',
    /collaboration-backend:0\.0\.9 is not one of/,
  ],
  [
    'a key that its Secret lacks',
    'production',
    '"key":"connection_string"',
    '"key":"connection"',
    /Secret rabbitmq-default-user with key connection/,
  ],
  [
    'a process that the NetworkPolicies keep from its brokers',
    'production',
    '"collaboration-backend/uses-broker":"true"}},"spec"',
    '"collaboration-backend/uses-brokers":"true"}},"spec"',
    /Deployment gateway: the NetworkPolicies keep it from rabbitmq-server-0\.rabbitmq-nodes:5672$/,
  ],
  [
    'brokers whose rabbitmqctl hears nothing of the others',
    'production',
    '"endPort":35682,"port":35672',
    '"port":35671',
    /RabbitmqCluster rabbitmq: the NetworkPolicies keep its servers apart at port 35672$/,
  ],
  ['a selector without pods', 'production', '"cnpg.io/cluster":"postgres"', '"cnpg.io/cluster":"other"', /no pod has the labels/],
  ['a port without a container', 'try-out', '"targetPort":"http"', '"targetPort":"web"', /has port web/],
  [
    'a grace shorter than the drain',
    'try-out',
    '"terminationGracePeriodSeconds":30',
    '"terminationGracePeriodSeconds":20',
    /must be more than/,
  ],
  ['a program that does not exist', 'try-out', 'dist/users.js', 'dist/apps/user/src/main.js', /does not exist/],
  ['a writable file system', 'try-out', '"readOnlyRootFilesystem":true', '"readOnlyRootFilesystem":false', /can be written/],
  [
    'pods that are spread beside earlier ones',
    'try-out',
    '"matchLabelKeys":["pod-template-hash"]',
    '"matchLabelKeys":[]',
    /earlier version/,
  ],
  ['a token', 'production', '"automountServiceAccountToken":false', '"automountServiceAccountToken":true', /token .* is mounted/],
  ['a queue that writers do not consume', 'production', 'notifications[.]calls|', '', /queueName must be/],
  ['a single writer', 'production', '"minReplicaCount":2', '"minReplicaCount":1', /two writers at least/],
  [
    'brokers that may all be evicted',
    'production',
    '"kind":"PodDisruptionBudget","metadata":{"name":"rabbitmq"',
    '"kind":"PodDisruptionBudget","metadata":{"name":"brokers"',
    /RabbitmqCluster rabbitmq: it needs a PodDisruptionBudget/,
  ],
  [
    'fewer connections of the database',
    'production',
    '"max_connections":"200"',
    '"max_connections":"150"',
    /maxReplicaCount must be 6/,
  ],
  [
    'a log that a lost standby lets fill its volume',
    'production',
    '"max_slot_wal_keep_size":"10GB"',
    '"max_slot_wal_keep_size":"-1"',
    /Cluster postgres: max_slot_wal_keep_size/,
  ],
  [
    'a standby that is promoted without the last commits',
    'production',
    '"failoverQuorum":true',
    '"failoverQuorum":false',
    /Cluster postgres: without failoverQuorum/,
  ],
  [
    'a standby that looks for its primary every 5 s',
    'production',
    '"wal_retrieve_retry_interval":"200ms"',
    '"wal_retrieve_retry_interval":"5s"',
    /Cluster postgres: commits wait/,
  ],
  [
    'a metric that no process has',
    'production',
    'command_age_seconds',
    'command_age',
    /no process has the metric rabbitmq_command_age$/,
  ],
  [
    'a job that no rule names',
    'production',
    'notification-(writers|readers)',
    'notification-(writers)',
    /PodMonitor processes: Deployment notification-readers gets the job notification-readers, which no rule names/,
  ],
  ['jobs without a name', 'production', '"jobLabel":', '"ignored":', /gets the job collaboration\/processes/],
  [
    'a pod that is scraped twice',
    'production',
    '"podMetricsEndpoints":[',
    '"podMetricsEndpoints":[{"port":"health"},',
    /Deployment users is scraped more than once/,
  ],
  ['metrics without alerts', 'production', '"kind":"PrometheusRule"', '"kind":"Rule"', /no PrometheusRule/],
  [
    'another setting of the broker',
    'production',
    'max_message_size = 5',
    'max_message_size = 2',
    /its configuration lacks max_message_size/,
  ],
  [
    'a broker that stops publishers at less memory than in compose',
    'production',
    'vm_memory_high_watermark.absolute = 1200MiB',
    'vm_memory_high_watermark.relative = 0.6',
    /its configuration lacks vm_memory_high_watermark\.absolute = 1200MiB/,
  ],
  [
    'a database with the shared memory of a plain container',
    'try-out',
    '"mountPath":"/dev/shm"',
    '"mountPath":"/dev/shm2"',
    /StatefulSet postgres: \/dev\/shm must have 256m$/,
  ],
  [
    'queues that keep one replica',
    'production',
    'reconciliation.enabled = true',
    'reconciliation.enabled = false',
    /its configuration lacks quorum_queue\.continuous_membership_reconciliation\.enabled/,
  ],
];
const MISSPELT: Case[] = [
  ['an unknown field', 'try-out', '"readinessProbe":', '"readinesProbe":', /gateway: .*readinesProbe/],
  ['an unknown field of an operator', 'production', '"maxReplicaCount":', '"maxReplicas":', /ScaledObject .*maxReplicas/],
  ['a value of another type', 'try-out', '"maxReplicas":2', '"maxReplicas":"two"', /not assignable to type 'number'/],
];

describe('the checks of the manifests', () => {
  let found: string[][];
  beforeAll(async () => {
    found = (await new Script(PROGRAM, [JSON.stringify([CASES, MISSPELT])]).next()) as string[][];
  });
  afterAll(() => Script.endAll());

  it.each([...CASES, ...MISSPELT].map(([name, , , , problem], index) => ({ name, problem, index })))(
    'find $name',
    ({ problem, index }) => {
      expect(found[index].filter((one) => problem.test(one))).not.toEqual([]);
    },
  );
});
