import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { letterQueues, QUEUES, SERVICES } from '@app/rabbitmq/topology/topology';

const GIBIBYTE = 1024 ** 3;

interface Manifest {
  kind: string;
  metadata: { name: string };
  spec: { template: { spec: { containers: { resources: { limits: { memory: string } } }[] } } };
}

it.each(['production', 'try-out'])('has room in the pod for tools of %s for a whole queue of letters', (overlay) => {
  const manifests = parseAllDocuments(readFileSync(`deploy/kubernetes/rendered/${overlay}.yaml`, 'utf8'));
  const tools = manifests
    .map((document) => document.toJS() as Manifest)
    .find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'tools');
  const { memory } = tools!.spec.template.spec.containers[0].resources.limits;
  const letters = QUEUES.filter(({ name }) => SERVICES.some((service) => letterQueues(service).includes(name)));
  const largest = Math.max(...letters.map((queue) => Number(queue.arguments['x-max-length-bytes'])));
  expect(memory).toMatch(/^\d+Gi$/);
  expect(parseInt(memory) * GIBIBYTE).toBeGreaterThan(largest);
});
