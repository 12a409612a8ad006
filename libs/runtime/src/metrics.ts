import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Counter, Gauge } from 'prom-client';
import { PROJECT_ROOT } from './project-root';
import type { Readiness } from './readiness';

export const linesDropped = new Counter({
  name: 'log_lines_dropped_total',
  help: 'Log lines dropped because stdout is read too slowly, takes nothing, such as a file on a full disk, or has no reader any more.',
});

export const logBufferLimit = new Gauge({
  name: 'log_buffer_limit_bytes',
  help: 'Bytes of log lines that may wait for stdout. Further lines are dropped.',
});

export const cacheLookups = new Counter({
  name: 'cache_lookups_total',
  help: 'Questions that a cache of this process could answer (hit) or not (miss): tenants that exist, members whose copy is complete, grants of publishers.',
  labelNames: ['cache', 'result'],
});

/** Counts one question to a cache. @returns `hit` */
export function countLookup(cache: 'tenants' | 'members' | 'grants', hit: boolean): boolean {
  cacheLookups.inc({ cache, result: hit ? 'hit' : 'miss' });
  return hit;
}

/** Declares the metrics that every process has: what it was built from, and what it depends on. */
export function describeProcess(service: string, readiness: Pick<Readiness, 'answers'>): void {
  new Gauge({
    name: 'build_info',
    help: 'Always 1. The labels are the process and the version of its package.json.',
    labelNames: ['service', 'version'],
  }).set({ service, version: ownVersion() }, 1);
  new Gauge({
    name: 'dependency_up',
    help: '1 while a dependency is usable, else 0. /health/ready has the reason. The gateway stays ready without its dependencies.',
    labelNames: ['dependency'],
    async collect() {
      for (const { name, reason } of await readiness.answers()) this.set({ dependency: name }, reason === undefined ? 1 : 0);
    },
  });
}

/** The version of package.json. */
export const ownVersion = (): string =>
  (JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string }).version;
