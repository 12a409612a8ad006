import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOCAL } from '../checkout/project.mjs';

const FILE = join(LOCAL, 'stack.json');
/** The prefix of the names under which the passwords of the broker's accounts are kept. */
export const BROKER_ACCOUNT = 'broker_';
const BROKER_ACCOUNTS = ['gateway', 'users', 'notifications', 'publisher'].map((name) => BROKER_ACCOUNT + name);
const ACCOUNTS = ['rabbitmq', 'postgres', 'users_service', 'notifications_service', 'operator', ...BROKER_ACCOUNTS];

/**
 * The settings of the private servers of this checkout, made at the first start: passwords, and the ports of the last start. So a replica
 * that was started by hand finds the servers again.
 * @returns {{ passwords: Record<string, string>, ports: { amqp?: number, management?: number, postgres?: number } }}
 */
export function readStackSecrets() {
  /** @type {Partial<ReturnType<typeof readStackSecrets>>} */
  let kept = {};
  try {
    kept = JSON.parse(readFileSync(FILE, 'utf8'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw new Error(`${FILE} cannot be read; delete ${LOCAL} to start afresh`, { cause: error });
  }
  const passwords = Object.fromEntries(
    ACCOUNTS.map((account) => [account, kept.passwords?.[account] ?? randomBytes(24).toString('hex')]),
  );
  const secrets = { passwords, ports: kept.ports ?? {} };
  writeStackSecrets(secrets);
  return secrets;
}

/** @param {ReturnType<typeof readStackSecrets>} secrets */
export function writeStackSecrets(secrets) {
  mkdirSync(LOCAL, { recursive: true });
  // On a full disk the earlier file stays: without it the data of the servers cannot be read any more.
  writeFileSync(`${FILE}.new`, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${FILE}.new`, FILE);
}
