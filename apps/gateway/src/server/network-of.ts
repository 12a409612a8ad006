import type { Socket } from 'node:net';

/** Groups of 16 bits that name a network of IPv6: one host may have all addresses with the same ones. */
const GROUPS = 4;
const ALL_GROUPS = 8;

/** The holder of a turn or a share: the address of a client, or its network of IPv6. */
export function networkOf({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string {
  // IPv4 within IPv6 has a dot.
  if (!remoteAddress.includes(':') || remoteAddress.includes('.')) return remoteAddress;
  const [left, right = []] = remoteAddress.split('::').map((groups) => groups.split(':').filter(Boolean));
  const zeros = Array<string>(ALL_GROUPS - left.length - right.length).fill('0');
  return [...left, ...zeros, ...right].slice(0, GROUPS).join(':');
}
