import { readFileSync } from 'node:fs';
import { connectionFailure } from '../processes/free-port.mjs';
import { UserError } from '../checkout/machine.mjs';

/** @type {Record<'AMQP_URL' | 'DATABASE_URL', { what: string, ports: Record<string, number> }>} */
const KINDS = {
  AMQP_URL: { what: 'RabbitMQ', ports: { 'amqp:': 5672, 'amqps:': 5671 } },
  DATABASE_URL: { what: 'PostgreSQL', ports: { 'postgres:': 5432, 'postgresql:': 5432 } },
};

/**
 * Checks a server that the user has named, by NAME or by NAME_FILE; then NAME has the value. A message names the variable and never shows
 * its value: it holds a password.
 * @param {'AMQP_URL' | 'DATABASE_URL'} name
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<boolean>} whether it is set
 */
export async function checkGivenServer(name, env) {
  const { what, ports } = KINDS[name];
  if (env[`${name}_FILE`]) takeFromFile(name, env);
  const value = env[name];
  if (!value) {
    const own = ['USERS', 'NOTIFICATIONS', 'GATEWAY']
      .flatMap((service) => [`${service}_${name}`, `${service}_${name}_FILE`])
      .find((candidate) => env[candidate]);
    if (own) throw new UserError(`${own} is set but ${name} is not: set both, or neither to have ${what} started for you.`);
    return false;
  }
  const schemes = Object.keys(ports)
    .map((scheme) => `${scheme}//`)
    .join(' or ');
  const urls = eachServer(value).map((one) => (URL.canParse(one) ? new URL(one) : undefined));
  let failure;
  for (const url of urls) {
    if (!url || !(url.protocol in ports) || !url.hostname)
      throw new UserError(`${name} is not a valid URL: it must look like ${schemes}user:password@host:port/name.`);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    failure = await connectionFailure(host, Number(url.port) || ports[url.protocol]);
    if (!failure) break;
  }
  if (failure)
    throw new UserError(
      `${what} cannot be reached at the address in ${name} (${failure.code ?? 'no connection'}); start it, correct ${name}, or unset it to have ${what} started for you.`,
    );
  return true;
}

/** @param {string} name @param {NodeJS.ProcessEnv} env */
function takeFromFile(name, env) {
  const path = env[`${name}_FILE`] ?? '';
  if (env[name]) throw new UserError(`${name} and ${name}_FILE are both set: only one of them may be.`);
  try {
    env[name] = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new UserError(`The file of ${name}_FILE cannot be read (${/** @type {NodeJS.ErrnoException} */ (error).code}).`);
  }
  delete env[`${name}_FILE`];
}

/**
 * A URL may name several servers: one that takes connections is enough here.
 * @param {string} value
 */
function eachServer(value) {
  const [, before = '', hosts = '', after = ''] =
    /^((?:postgres(?:ql)?|amqps?):\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is.exec(value) ?? [];
  return before ? hosts.split(',').map((host) => `${before}${host}${after}`) : [value];
}
