import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { report } from '@app/testing/report';

const required = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run "npm run test:containers".`);
  return value;
};

/** Part of the name of everything that this run starts: scripts/test-containers.mjs removes what has it. */
export const RUN = required('TEST_RUN');
export const IMAGE = required('TEST_IMAGE');
/** The same, with another label. */
export const NEXT_IMAGE = required('TEST_NEXT_IMAGE');

export interface Container {
  Id: string;
  Image: string;
  RestartCount: number;
  Config: { User: string };
  State: {
    Status: string;
    ExitCode: number;
    OOMKilled: boolean;
    StartedAt: string;
    FinishedAt: string;
    Health?: { Status: string };
  };
  NetworkSettings: { Ports: Record<string, { HostIp: string; HostPort: string }[] | null> };
}

export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('docker', args, { timeout: 300_000, maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

export async function inspect(container: string): Promise<Container> {
  return (JSON.parse(await docker('container', 'inspect', container)) as Container[])[0];
}

/** Address of a port of a container at this machine; changes when the container starts again. */
export async function urlOf(container: string, port: number): Promise<string> {
  const { NetworkSettings } = await inspect(container);
  const [binding] = NetworkSettings.Ports[`${port}/tcp`] ?? [];
  if (!binding) throw new Error(`${container} does not publish ${port}`);
  return `http://127.0.0.1:${binding.HostPort}`;
}

/** Stops a container as compose and a kubelet do. */
export async function stop(container: string, graceSeconds: number): Promise<{ exitCode: number; ms: number }> {
  const since = performance.now();
  await docker('stop', '--time', String(graceSeconds), container);
  const ms = performance.now() - since;
  return { exitCode: (await inspect(container)).State.ExitCode, ms };
}

/** Runs JavaScript in a container, as its user. */
export const evaluate = (container: string, script: string): Promise<string> =>
  docker('exec', container, 'node', '--eval', script);

/** The kernel's view of the process of a service, which is the last one to start in its container. */
export async function processOf(container: string): Promise<Record<string, string>> {
  const status = await evaluate(
    container,
    `const fs = require('fs');
     const service = fs.readdirSync('/proc').find((pid) => /^\\d+$/.test(pid) && fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8').startsWith('node\\0--enable-source-maps'));
     console.log(fs.readFileSync('/proc/' + service + '/status', 'utf8'));`,
  );
  return Object.fromEntries(status.split('\n').map((line) => line.split(/:\s*/, 2) as [string, string]));
}

/** A row of the table that the command prints. */
export const note = (row: string, figure: string): void => report({ row, figure });
