import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

interface Deployment {
  kind: string;
  metadata: { name: string };
  spec: { template: { spec: { containers: { resources: { requests: { memory: string } } }[] } } };
}

/** Bytes that each process had under load, in each run on the page. */
function measured(): Record<string, number[]> {
  const rows = readFileSync('docs/benchmarks.md', 'utf8').match(/^\| resident memory of .*$/gm) ?? [];
  const figures = rows.flatMap((row) => [...row.matchAll(/(\w+) (\d+) MB(?! each)/g)]);
  return Object.fromEntries(
    ['gateway', 'users', 'notifications'].map((process) => [
      process,
      figures.filter(([, name]) => name === process).map(([, , megabytes]) => Number(megabytes) * 1e6),
    ]),
  );
}

const deployments = parseAllDocuments(readFileSync('deploy/kubernetes/rendered/production.yaml', 'utf8'))
  .map((document) => document.toJS() as Deployment)
  .filter(({ kind }) => kind === 'Deployment');

describe('the memory that pods request', () => {
  // A pod above its request is among the first to be evicted when its node is short of memory.
  it.each([
    ['gateway', 'gateway'],
    ['users', 'users'],
    ['notification-writers', 'notifications'],
    ['notification-readers', 'notifications'],
  ])('%s has room for what the benchmark measured', (name, process) => {
    const [container] = deployments.find(({ metadata }) => metadata.name === name)?.spec.template.spec.containers ?? [];
    const [, mebibytes] = /^(\d+)Mi$/.exec(container?.resources.requests.memory ?? '') ?? [];
    const busiest = Math.max(...(measured()[process] ?? []));
    expect(busiest).toBeGreaterThan(0);
    expect(Number(mebibytes) * 2 ** 20).toBeGreaterThan(busiest);
  });
});
