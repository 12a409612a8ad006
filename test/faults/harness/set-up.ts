import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Credentials } from './cluster';

/** AMQP_URL and DATABASE_URL with full rights. */
type Servers = Record<string, string>;

/** Runs `npm run setup` of a checkout. */
export async function setUp(root: string, servers: Servers): Promise<void> {
  await run(root, ['scripts/setup.mjs'], { ...servers, DEMO_CREDENTIALS: 'true' });
}

/** @returns the credentials of the demo and of two new tenants, for which workloads may publish with the full-rights account */
export async function createTenants(root: string, servers: Servers): Promise<readonly Credentials[]> {
  // The program has another path in other versions.
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: { keys: string } };
  const keys = scripts.keys.split(' ').slice(1);
  const newTenant = async () => {
    const created = await run(root, [...keys, 'create', '--json'], servers);
    const { key, token } = JSON.parse(created) as { key: string; token: string };
    await run(root, [...keys, 'grant', key, '--publisher', '*'], servers);
    return { 'x-svc-api-key': key, 'x-svc-auth-token': token };
  };
  return [{ 'x-svc-api-key': 'demo-key', 'x-svc-auth-token': 'demo-token' }, ...(await Promise.all([newTenant(), newTenant()]))];
}

async function run(root: string, command: string[], env: Record<string, string>): Promise<string> {
  const options = { cwd: root, env: { PATH: process.env.PATH, ...env } };
  return (await promisify(execFile)(process.execPath, command, options)).stdout;
}
