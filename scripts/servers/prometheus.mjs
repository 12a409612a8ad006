import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '../processes/free-port.mjs';
import { ServerProcess } from '../processes/server-process.mjs';
import { findProgram, needProgram } from '../programs/packages.mjs';

export const PROMETHEUS_MISSING =
  'This needs Prometheus with promtool, and they were not found. On Debian: apt-get install prometheus';

/** The package has both, and releases of Prometheus have them in one archive. */
export const hasPrometheus = () => ['prometheus', 'promtool'].every(findProgram);

/** @param {(what: string) => void} onProgress called before something that takes long */
export const needPrometheus = (onProgress) =>
  needProgram(
    {
      name: 'Prometheus',
      has: hasPrometheus,
      packages: ['prometheus'],
      units: ['prometheus.service'],
      missing: PROMETHEUS_MISSING,
    },
    onProgress,
  );

/**
 * Starts a Prometheus of our own. It reads the addresses of its targets from `targets.json` in the directory, whenever that file changes.
 * @param {object} options
 * @param {string} options.directory an existing one for data, log and targets
 * @param {string} [options.rules] a file with rules
 */
export async function startPrometheus({ directory, rules }) {
  const [port] = await freePorts([undefined]);
  const configuration = {
    // As in deploy/kubernetes/components/monitoring.
    global: { scrape_interval: '5s' },
    rule_files: rules ? [rules] : [],
    scrape_configs: [{ job_name: 'processes', file_sd_configs: [{ files: [join(directory, 'targets.json')] }] }],
  };
  const file = join(directory, 'prometheus.json');
  writeFileSync(file, JSON.stringify(configuration)); // JSON is YAML, too
  writeFileSync(join(directory, 'targets.json'), '[]');
  const url = `http://127.0.0.1:${port}`;
  const server = new ServerProcess({
    name: 'Prometheus',
    describe: () => ({
      command: 'prometheus',
      args: [`--config.file=${file}`, `--storage.tsdb.path=${join(directory, 'data')}`, `--web.listen-address=127.0.0.1:${port}`],
    }),
    logFile: join(directory, 'prometheus.log'),
    isReady: () =>
      fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    stopSignal: 'SIGTERM',
    onOrphaned: { script: 'end_group TERM 50' },
  });
  await server.start();
  return { server, url, port };
}
