import { readFileSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';
import { letterQueues, QUEUES, SERVICES } from '@app/rabbitmq/topology/topology';

const GIBIBYTE = 1024 ** 3;

interface Manifest {
  kind: string;
  metadata: { name: string };
  spec: { template: { spec: { containers: { env: { name: string }[]; resources: { limits: { memory: string } } }[] } } };
}

interface ComposeService {
  image: string;
  build?: object;
  depends_on?: object;
  environment: Record<string, string>;
  mem_limit: string;
  networks: string[];
  profiles?: string[];
}

const podForTools = (overlay: string) =>
  parseAllDocuments(readFileSync(`deploy/kubernetes/rendered/${overlay}.yaml`, 'utf8'))
    .map((document) => document.toJS() as Manifest)
    .find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'tools')!.spec.template.spec.containers[0];

const { tools, setup } = (
  parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }) as { services: Record<string, ComposeService> }
).services;

describe.each(['production', 'try-out'])('the pod for tools of %s', (overlay) => {
  it('has room for a whole queue of letters', () => expectRoomForLetters(podForTools(overlay).resources.limits.memory));

  it('has the account of each service, for the doctor', () => {
    const names = podForTools(overlay).env.map(({ name }) => name);
    for (const service of ['GATEWAY', 'USERS', 'NOTIFICATIONS']) expect(names).toContain(`${service}_AMQP_URL_FILE`);
  });
});

describe('the container for tools of compose', () => {
  it('has room for a whole queue of letters', () => expectRoomForLetters(tools.mem_limit));

  it('has what set-up has, and neither starts a server that is down nor builds an image', () => {
    const { image, environment, networks } = setup;
    expect(tools).toMatchObject({ image, environment, networks });
    expect([tools.depends_on, tools.build]).toEqual([undefined, undefined]);
  });

  it('does not start with the system, which would wait for it', () => expect(tools.profiles).toEqual(['tools']));
});

/** @param memory as Kubernetes writes it, or compose */
function expectRoomForLetters(memory: string): void {
  const letters = QUEUES.filter(({ name }) => SERVICES.some((service) => letterQueues(service).includes(name)));
  const largest = Math.max(...letters.map((queue) => Number(queue.arguments['x-max-length-bytes'])));
  expect(memory).toMatch(/^\d+(Gi|g)$/);
  expect(parseInt(memory) * GIBIBYTE).toBeGreaterThan(largest);
}
