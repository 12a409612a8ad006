import { invalidHost, splitHosts } from '@app/runtime/settings/broker-url';

/**
 * Reads `http://user:password@host1:15672,host2:15672`.
 *
 * @returns one URL for each node
 * @throws Error whose message continues a sentence that begins with the name of a variable. It never quotes the URL, because that may contain a
 *   password
 */
export function parseManagementUrl(url: string): URL[] {
  const { protocol, credentials, hosts, path } = splitHosts(url, ['http', 'https']);
  return hosts.map((host, at) => {
    const one = `${protocol}://${credentials && `${credentials}@`}${host}/${path}`;
    if (!URL.canParse(one)) throw invalidHost(at);
    return new URL(one);
  });
}
