/** A node of the broker, or a host name with the addresses of several nodes. */
export interface BrokerAddress {
  host: string;
  port: number;
}

/** The parts of a broker URL. */
export interface BrokerUrl {
  protocol: 'amqp' | 'amqps';
  /** Nodes of one cluster, in the order of the URL. */
  addresses: readonly BrokerAddress[];
  username: string;
  password: string;
  /** Encoded for a URL. */
  vhost: string;
}

/** An address is also a label of a metric. */
const MAX_HOSTS = 16;

/** Protocol, credentials, hosts and path. */
const FORM = /^(\w+):\/\/(?:([^/?#]*)@)?([^@/?#]+)(?:\/([^?#]*))?(?:[?#].*)?$/;

/** Such a character ends the credentials, as in many a random password. The same holds for URLs of PostgreSQL. */
export const UNESCAPED = 'must have a /, ? or # in user or password written as %2F, %3F or %23, and a @ behind the host as %40';

const DEFAULT_PORTS = { amqp: 5672, amqps: 5671 };

/** `host:port`, with brackets around an IPv6 address. */
export const addressText = ({ host, port }: BrokerAddress): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/**
 * Reads `amqp://user:password@host1:5672,host2,host3/vhost`. All addresses share the credentials and the virtual host.
 *
 * @throws Error of {@link splitHosts}, or about the credentials, in the same form
 */
export function parseBrokerUrl(url: string): BrokerUrl {
  const { protocol, credentials, hosts, path } = splitHosts(url, ['amqp', 'amqps']);
  const [username, ...password] = credentials.split(':');
  decode(path);
  return {
    protocol,
    addresses: hosts.map((host, at) => readAddress(host, at, DEFAULT_PORTS[protocol])),
    username: decode(username) || 'guest',
    password: decode(password.join(':')) || 'guest',
    vhost: path || '%2F',
  };
}

/**
 * Splits a URL with one or more hosts, separated by commas.
 *
 * @throws Error whose message continues a sentence that begins with the name of a variable. It never quotes the URL, because that contains a password
 */
export function splitHosts<Protocol extends string>(url: string, protocols: readonly Protocol[]) {
  const [, scheme, credentials, list = '', path = ''] = FORM.exec(url) ?? [];
  const protocol = protocols.find((one) => one === scheme);
  if (!protocol) throw new Error(`must be a URL that starts with ${protocols.map((one) => `${one}://`).join(' or ')}`);
  if (credentials === undefined && url.includes('@')) throw new Error(UNESCAPED);
  // Otherwise the password would extend to the last host.
  if (/@.*,/.test(credentials ?? ''))
    throw new Error('must have user and password once, in front of the first host; a @ in the password is written as %40');
  const hosts = list.split(',');
  if (new Set(hosts.map((host) => host.toLowerCase())).size < hosts.length) throw new Error('must not name a host twice');
  if (hosts.length > MAX_HOSTS) throw new Error(`must not have more than ${MAX_HOSTS} hosts`);
  return { protocol, credentials: credentials ?? '', hosts, path };
}

/** The URL with other credentials, for the same nodes. */
export const brokerUrlAs = (url: string, username: string, password: string): string =>
  url.replace(
    /^(amqps?:\/\/)(?:[^/?#]*@)?/,
    (_, start) => `${start}${encodeURIComponent(username)}:${encodeURIComponent(password)}@`,
  );

function readAddress(text: string, at: number, defaultPort: number): BrokerAddress {
  const url = URL.canParse(`amqp://${text}`) ? new URL(`amqp://${text}`) : undefined;
  // A URL takes these characters in a host name, and no host has them.
  if (!url?.hostname || /[%;=&$!*'()+]/.test(url.hostname) || text.endsWith(':') || url.port === '0') throw invalidHost(at);
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port) || defaultPort };
}

/** @param at its index in the list */
export const invalidHost = (at: number) =>
  new Error(`has no valid host at place ${at + 1} of its list: it must be host or host:port, with brackets around IPv6`);

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('must have a % in user, password or virtual host written as %25');
  }
}
