import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

interface Manifest {
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  spec?: { replicas?: number; scaleTargetRef?: { name: string } };
}

const manifests = parseAllDocuments(readFileSync('deploy/kubernetes/rendered/production.yaml', 'utf8')).map(
  (document) => document.toJS() as Manifest,
);
const nameOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.name}`;
/** Whether its pods run by themselves. */
const runs = ({ kind, spec }: Manifest) => kind === 'Deployment' && spec?.replicas !== 0;

/** The commands of the page, with one line for each round of the loop. */
function commandsOfPage(): string[] {
  const [, commands = ''] = /^## Upgrade\n.*?```sh\n(.*?)```/ms.exec(readFileSync('docs/kubernetes.md', 'utf8')) ?? [];
  return commands
    .replace(/^for name in (.*); do\n(.*?)^done$/gms, (_, names: string, body: string) =>
      names
        .split(' ')
        .map((name) => body.replaceAll('$name', name))
        .join(''),
    )
    .split('\n');
}

function isSelected({ metadata: { labels = {} } }: Manifest, selector: string | undefined): boolean {
  const [, label = '', names] = /^(\S+) notin \((.*)\)$/.exec(selector ?? '') ?? [];
  if (names !== undefined) return !names.split(',').includes(labels[label] ?? '');
  const [key = '', value] = selector?.split('=') ?? [];
  return selector === undefined || labels[key] === value;
}

describe('the upgrade on Kubernetes', () => {
  const applied = commandsOfPage()
    .filter((line) => line.includes('kubectl apply'))
    .map((line) => {
      const [, quoted, word] = /--selector (?:'([^']*)'|(\S+))/.exec(line) ?? [];
      return manifests.filter((manifest) => isSelected(manifest, quoted ?? word));
    });

  it('applies the rights of accounts and all else that a process needs before the first process of the new version', () => {
    const first = applied.findIndex((step) => step.some(runs));
    const before = new Set(applied.slice(0, first).flat());
    expect(manifests.filter((manifest) => !runs(manifest) && !before.has(manifest)).map(nameOf)).toEqual([]);
  });

  it('replaces no service when a step before has failed', () => {
    const lines = commandsOfPage();
    const steps = lines.slice(0, lines.findIndex((line) => line.includes('rollout')) - 1);
    expect(steps.filter((line) => !line.endsWith(' &&'))).toEqual([]);
  });

  it('replaces one service after the other, and the gateway last', () => {
    const steps = applied.map((step) => step.filter(runs).map(({ metadata }) => metadata.name));
    expect(steps.filter((names) => names.length > 0)).toEqual([
      ['users'],
      ['notification-writers'],
      ['notification-readers'],
      ['gateway'],
    ]);
  });
});

describe('the end of all processes on Kubernetes', () => {
  it('is that of each Deployment that runs, in a way that no autoscaler takes back', () => {
    const [, commands = ''] = /^## Stop and start\n.*?```sh\n(.*?)```/ms.exec(readFileSync('docs/kubernetes.md', 'utf8')) ?? [];
    const scaled = manifests.flatMap(({ kind, spec }) => (kind === 'ScaledObject' ? (spec?.scaleTargetRef?.name ?? []) : []));
    const paused = [...commands.matchAll(/annotate scaledobject (\S+) autoscaling\.keda\.sh\/paused-replicas=0/g)];
    expect(paused.map(([, name]) => name)).toEqual(scaled);
    const ended = [...commands.matchAll(/deployment\/(\S+)/g)].map(([, name = '']) => name);
    const running = manifests.filter(runs).map(({ metadata }) => metadata.name);
    expect([...ended, ...scaled].toSorted()).toEqual(running.toSorted());
  });
});
