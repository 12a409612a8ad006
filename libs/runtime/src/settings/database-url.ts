import { UNESCAPED } from './broker-url';
import { optionalUrl, url, type Outcome, type Setting } from './settings';
import { databaseTlsObstacle } from './tls-settings';

const PROTOCOLS: [string, string] = ['postgres:', 'postgresql:'];
/** A search for the server that accepts writes tries all of them. */
const MAX_SERVERS = 8;
const FORM = 'postgres://user:password@one:5432,two:5432/name';

/**
 * Splits a PostgreSQL URL with one or several servers into one URL for each server, in the given order. User, password, database and parameters
 * are the same in all of them.
 *
 * @param connectionString such as `postgres://user:password@one:5432,two:5432/name`
 * @throws Error with the problem as the rest of a sentence. It never contains the value
 */
export function databaseServers(connectionString: string): string[] {
  const [, protocol = '', authority = '', rest = ''] = /^([a-z]+:\/\/)([^/?#]*)(.*)$/is.exec(connectionString) ?? [];
  const hosts = authority.slice(authority.lastIndexOf('@') + 1);
  const credentials = authority.slice(0, authority.length - hosts.length);
  const servers = hosts.split(',');
  const urls = servers.map((server) => `${protocol}${credentials}${server}${rest}`);
  if (servers.length > 1 && !servers.every((server, index) => isServer(server, urls[index] ?? '')))
    throw new Error(`must name each server as host or host:port, separated by commas: ${FORM}`);
  if (!urls.every((one) => URL.canParse(one) && PROTOCOLS.includes(new URL(one).protocol) && new URL(one).hostname !== ''))
    throw new Error(
      PROTOCOLS.includes(protocol.slice(0, -2)) && credentials === '' && rest.includes('@')
        ? UNESCAPED
        : 'must be a URL that starts with postgres:// or postgresql://',
    );
  if (servers.length > MAX_SERVERS) throw new Error(`must name at most ${MAX_SERVERS} servers`);
  if (new Set(urls.map((one) => `${new URL(one).hostname}:${new URL(one).port || 5432}`.toLowerCase())).size < urls.length)
    throw new Error('must name each server once');
  const { pathname, searchParams: parameters } = new URL(urls[0] ?? '');
  // The driver would fail at each connection.
  if (!isEncoded(pathname)) throw new Error('must have a % in the name of the database written as %25');
  if (!['read-write', 'primary'].includes(parameters.get('target_session_attrs') ?? 'primary'))
    throw new Error('must not have another target_session_attrs than read-write: only a server that accepts writes is used');
  if (servers.length > 1 && (parameters.has('host') || parameters.has('port')))
    throw new Error('must not have the parameters host and port beside several servers');
  return urls;
}

function isEncoded(text: string): boolean {
  try {
    decodeURI(text);
    return true;
  } catch {
    return false;
  }
}

const isServer = (server: string, one: string): boolean => /^(\[[^\]]+\]|[^:[\]\s]+)(:\d+)?$/.test(server) && URL.canParse(one);

/** A required URL of PostgreSQL, with one or several servers. */
export const databaseUrl = (names: Parameters<typeof url>[0], description: string): Setting<string> =>
  checked(url(names, PROTOCOLS, description));

/** An optional URL of PostgreSQL, with one or several servers; undefined when unset. */
export const optionalDatabaseUrl = (names: Parameters<typeof url>[0], description: string): Setting<string | undefined> =>
  checked(optionalUrl(names, PROTOCOLS, description));

function checked<T>(setting: Setting<T>): Setting<T | string> {
  return { ...setting, read: (raw, env) => (raw === undefined ? setting.read(raw, env) : read(raw, env)) };
}

function read(raw: string, env: NodeJS.ProcessEnv): Outcome<string> {
  try {
    const [first = ''] = databaseServers(raw);
    const problem = databaseTlsObstacle(first, env);
    return problem ? { problem } : { value: raw };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
