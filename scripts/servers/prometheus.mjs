import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { UserError } from '../checkout/machine.mjs';
import { runQuietly } from '../processes/command.mjs';
import { freePorts } from '../processes/free-port.mjs';
import { ServerProcess } from '../processes/server-process.mjs';
import { canInstall } from './rabbitmq-program.mjs';

const INSTALLER = fileURLToPath(new URL('./prometheus-install.sh', import.meta.url));

const hasPrometheus = () =>
  promisify(execFile)('prometheus', ['--version'], { timeout: 20_000 }).then(
    () => true,
    () => false,
  );

/**
 * Installs Prometheus where that is possible.
 * @param {(what: string) => void} onProgress called before something that takes long
 * @throws {UserError} naming the package
 */
export async function needPrometheus(onProgress) {
  if (await hasPrometheus()) return;
  if (canInstall()) {
    onProgress('installing Prometheus with apt-get (once)');
    await runQuietly('sh', [INSTALLER], { name: 'The installation of Prometheus', mayOutliveUs: true });
    if (await hasPrometheus()) return;
  }
  throw new UserError('This needs Prometheus, and it was not found. On Debian: apt-get install prometheus');
}

/**
 * Starts a Prometheus of our own. It reads the addresses of its targets from `targets.json` in the directory, whenever that file changes.
 * @param {object} options
 * @param {string} options.directory an existing one for data, log and targets
 */
export async function startPrometheus({ directory }) {
  const [port] = await freePorts([undefined]);
  const configuration = {
    // As in deploy/kubernetes/components/monitoring.
    global: { scrape_interval: '5s' },
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
