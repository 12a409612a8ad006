import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { connectionFailure, freePorts } from '../../processes/free-port.mjs';
import { commandLine, endProcess, isAlive } from '../../processes/processes.mjs';
import { ServerProcess } from '../../processes/server-process.mjs';
import { archiveSettings, restore } from './archive.mjs';
import { copyPrimary, standbySettings } from './standby.mjs';
import { postgresIdentity, postgresPrograms, runAs } from './program.mjs';

const FAST_AND_UNSAFE = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];

/**
 * Starts a PostgreSQL of our own.
 * @param {object} options
 * @param {string} options.directory an existing one for data and log; started again with the same, it has the same data
 * @param {string} [options.password] of the superuser; absent: none is asked for
 * @param {number} [options.port] taken when free
 * @param {boolean} [options.fsync] false for data that nobody will miss
 * @param {string} [options.standbyOf] URL of the superuser of a primary on this machine; this one starts as a copy that follows it
 * @param {string} [options.archive] a directory to which the log is archived
 * @param {{ archive: string, until?: string }} [options.restoreFrom] the backup and log of such a server, with which this one starts
 * @param {string[]} [options.settings] others than these, each `name=value`
 * @param {string} [options.tls] a directory with ca.pem, cert.pem and key.pem: only TLS, and only with a certificate of that authority
 * @param {() => void} [options.onDeath] called when it goes by itself
 * @param {AbortSignal} [options.abort] ends a start that is under way
 */
export async function startPostgres(options) {
  const { directory, password, port: preferred, fsync = true, standbyOf, settings: more = [], tls, onDeath, abort } = options;
  const { archive, restoreFrom } = options;
  const programs = await postgresPrograms();
  const identity = postgresIdentity();
  const data = join(directory, 'data');
  const logFile = join(directory, 'postgres.log');
  const [port] = await freePorts([preferred]);
  if (identity) chmodSync(directory, 0o711); // its user has to pass through it

  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=200',
    'shared_buffers=128MB',
    'timezone=UTC',
    ...(fsync ? [] : FAST_AND_UNSAFE),
    ...(tls ? tlsSettings(directory, password) : []),
    ...(standbyOf ? standbySettings(standbyOf) : []),
    ...(archive ? archiveSettings(archive, identity) : []),
    ...(restoreFrom ? restore(restoreFrom.archive, data, restoreFrom.until) : []),
    ...more,
  ];
  const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
  const pidFile = join(data, 'postmaster.pid');
  const server = new ServerProcess({
    name: 'PostgreSQL',
    describe: () => runAs(programs.postgres, args, identity, data),
    logFile,
    // The server itself says when it takes connections, which is later than when its port is open.
    isReady: async () =>
      existsSync(pidFile) && /^ready\s*$/m.test(readFileSync(pidFile, 'utf8')) && !(await connectionFailure('127.0.0.1', port)),
    stopSignal: 'SIGINT', // the fast shutdown: ends sessions, keeps what is committed
    onOrphaned: { script: 'end_group INT 50' },
    onDeath,
    abort,
  });
  // Only now: from here on somebody cleans up should we be killed.
  if (existsSync(data)) await clearTheWay(data);
  else if (standbyOf) await copyPrimary(standbyOf, data);
  else initialise(programs.initdb, identity, data, password);
  const copyTls = () => tls && copyCertificates(tls, directory, identity);
  copyTls();
  await server.start();
  const credentials = password ? `postgres:${password}` : 'postgres';
  const host = tls ? 'localhost' : '127.0.0.1';
  /** Takes the files of `tls` anew, for new connections. */
  const reload = () => {
    copyTls();
    if (server.pid) process.kill(server.pid, 'SIGHUP');
  };
  return { server, url: `postgres://${credentials}@${host}:${port}/postgres`, port, reload };
}

const PEM_FILES = ['ca.pem', 'cert.pem', 'key.pem'];

/** @param {string} directory @param {string | undefined} password */
function tlsSettings(directory, password) {
  const rules = join(directory, 'hba.conf');
  writeFileSync(rules, `hostssl all all all ${password ? 'scram-sha-256' : 'trust'} clientcert=verify-ca\n`);
  const [ca, certificate, key] = PEM_FILES.map((name) => join(directory, name));
  return ['ssl=on', `ssl_ca_file=${ca}`, `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`, `hba_file=${rules}`];
}

// PostgreSQL refuses a key that is not its own or that others may read.
/** @param {string} from @param {string} to @param {ReturnType<typeof postgresIdentity>} identity */
function copyCertificates(from, to, identity) {
  for (const name of PEM_FILES) {
    const copy = join(to, name);
    copyFileSync(join(from, name), copy);
    chmodSync(copy, 0o600);
    if (identity) chownSync(copy, identity.uid, identity.gid);
  }
}

/**
 * @param {string} initdb
 * @param {ReturnType<typeof postgresIdentity>} identity
 * @param {string} data
 * @param {string | undefined} password
 */
function initialise(initdb, identity, data, password) {
  // Made beside and moved, so that an interrupted first start is not taken for a database.
  const fresh = `${data}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  const passwordFile = `${data}.password`;
  if (password) writeFileSync(passwordFile, password, { mode: 0o600 });
  if (identity) for (const path of password ? [fresh, passwordFile] : [fresh]) chownSync(path, identity.uid, identity.gid);
  const authentication = password ? ['-A', 'scram-sha-256', `--pwfile=${passwordFile}`] : ['-A', 'trust'];
  // The builtin provider: the same sort order on every platform, whatever locales are installed.
  const locale = ['-E', 'UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const { command, args, options } = runAs(
    initdb,
    ['-D', fresh, '-U', 'postgres', ...authentication, ...locale, '--no-sync', '--no-instructions'],
    identity,
    fresh,
  );
  const made = spawnSync(command, args, { ...options, encoding: 'utf8' });
  rmSync(passwordFile, { force: true });
  if (made.status !== 0) throw new Error(`PostgreSQL could not make its data directory: ${made.stderr || made.error?.message}`);
  renameSync(fresh, data);
}

// After a crash the server may still run, or its pid file may name a process that has nothing to do with it:
// PostgreSQL would refuse to start in both cases.
/** @param {string} data */
async function clearTheWay(data) {
  const pidFile = join(data, 'postmaster.pid');
  if (!existsSync(pidFile)) return;
  const pid = Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
  if (!(pid > 1) || !isAlive(pid)) return;
  if (commandLine(pid).includes(data)) await endProcess(pid, { politely: 'SIGINT' });
  else rmSync(pidFile, { force: true });
}
