import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@app/testing/eventually';
import { ComposeProject } from './harness/compose-project';
import { docker, inspect, note, processOf, stop, urlOf } from './harness/docker';
import { createContainer, renderedPods, target, type Pod } from './harness/pods';
import { tryReadmeCalls } from './harness/readme-calls';

const LIMIT_MS = 300_000;
/** A process that ends before it has a handler ends like any other by the signal. */
const ENDED_BY_SIGTERM = 143;

/** A kubelet, played: the containers of the rendered overlay try-out, beside the two servers of the compose file. */
describe('the pods of the manifests', () => {
  const servers = new ComposeProject('pods');
  const directory = mkdtempSync(join(tmpdir(), 'pods-'));
  const pods = renderedPods();
  const deployments = pods.filter(({ kind }) => kind === 'Deployment');
  const running = new Map<string, string>();
  const names = deployments.map(({ name }) => name);
  const podOf = (name: string) => deployments.find((pod) => pod.name === name)!;
  const created: string[] = [];
  const create = async (pod: Pod) => {
    const id = await createContainer(pod, servers.networks(), directory);
    created.push(id);
    return id;
  };
  const probe = async (pod: Pod, kind: 'livenessProbe' | 'readinessProbe'): Promise<boolean> => {
    const { port, path, timeoutMs } = target(pod, kind);
    const url = `${await urlOf(running.get(pod.name)!, port)}${path}`;
    // The engine may accept a connection to a container that does not listen yet, and never answer it.
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    const body = await response.text();
    return response.ok || Promise.reject(new Error(`${pod.name}: ${response.status} ${body}`));
  };

  beforeAll(() => servers.run(['up', '--wait', 'rabbitmq', 'postgres']), LIMIT_MS);
  afterAll(async () => {
    for (const id of created) await docker('rm', '--force', '--volumes', id);
    await servers.remove();
    rmSync(directory, { recursive: true, force: true });
  }, LIMIT_MS);

  it('begin with set-up, which ends with 0', async () => {
    const jobs = pods.filter(({ kind }) => kind === 'Job');
    expect(jobs.map(({ name }) => name)).toEqual(['set-up']);
    const id = await create(jobs[0]);
    await docker('start', id);
    expect([await docker('wait', id), jobs[0].name]).toEqual(['0', 'set-up']);
  });

  it('become ready, by the probes of their Deployments', async () => {
    const since = performance.now();
    for (const pod of deployments) running.set(pod.name, await create(pod));
    for (const id of running.values()) await docker('start', id);
    for (const pod of deployments) await eventually(() => probe(pod, 'readinessProbe'));
    note(`${deployments.length} pods ready`, `${((performance.now() - since) / 1000).toFixed(1)} s`);
    for (const pod of deployments) await probe(pod, 'livenessProbe');
  });

  it.each(names)('%s has no rights, and no capability', async (name) => {
    expect(await processOf(running.get(name)!)).toMatchObject({
      Uid: '1000\t1000\t1000\t1000',
      Gid: '1000\t1000\t1000\t1000',
      CapEff: '0000000000000000',
      CapBnd: '0000000000000000',
      NoNewPrivs: '1',
      Seccomp: '2',
    });
  });

  it('answer the calls of the README', async () => {
    const answers = await tryReadmeCalls(await urlOf(running.get('gateway')!, 3000));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers.at(-1)?.body.result?.data).toMatchObject([{ actionUser: { userId: 'ada' } }]);
  });

  it.each(names)('%s ends within its grace after a SIGTERM 50 ms after its start', async (name) => {
    const pod = podOf(name);
    const id = await create(pod);
    await docker('start', id);
    // The command itself takes about 50 ms to reach the engine.
    await docker('kill', '--signal', 'TERM', id);
    await eventually(async () => (await inspect(id)).State.Status === 'exited', pod.graceSeconds * 1000);
    const { ExitCode, StartedAt, FinishedAt } = (await inspect(id)).State;
    note(
      `${name}: SIGTERM at once`,
      `exit code ${ExitCode}, ${Date.parse(FinishedAt) - Date.parse(StartedAt)} ms after its start`,
    );
    expect([0, ENDED_BY_SIGTERM]).toContain(ExitCode);
  });

  it.each(names)('%s stops within its grace, with exit code 0', async (name) => {
    const { exitCode, ms } = await stop(running.get(name)!, podOf(name).graceSeconds);
    note(`stop of pod ${name}`, `${(ms / 1000).toFixed(1)} s`);
    expect(exitCode).toBe(0);
    expect(ms).toBeLessThan(podOf(name).graceSeconds * 1000);
  });
});
