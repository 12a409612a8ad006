import { createServer } from 'node:net';

const EVERY_ADDRESS = '::';
const EVERY_IPV4_ADDRESS = '0.0.0.0';
/** Error codes on a machine without IPv6. */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'];

/** @returns the address itself, or `0.0.0.0` instead of `::` on a machine without IPv6 */
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
