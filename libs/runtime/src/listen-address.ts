import { createServer } from 'node:net';

const EVERY_ADDRESS = '::';
const EVERY_IPV4_ADDRESS = '0.0.0.0';
/** Of a machine whose IPv6 is switched off. */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'];

/** @returns the address itself; instead of `::` every IPv4 address, where there is no IPv6 */
export async function addressToListenOn(host: string, hasIpv6 = canListenOnIpv6): Promise<string> {
  return host === EVERY_ADDRESS && !(await hasIpv6()) ? EVERY_IPV4_ADDRESS : host;
}

function canListenOnIpv6(): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(!NO_IPV6.includes(code)));
    probe.listen(0, EVERY_ADDRESS, () => probe.close(() => resolve(true)));
  });
}
