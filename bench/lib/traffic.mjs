import { execFileSync } from 'node:child_process';

/**
 * Bytes over TCP that a server on this machine has received and sent, over the connections that are open now. Needs `ss` of Linux.
 * @param {number} port of the server
 * @returns {{ received: number, sent: number }}
 */
export function trafficOf(port) {
  const output = execFileSync('ss', ['-tinH', 'state', 'established', `( sport = :${port} )`], { encoding: 'utf8' });
  /** @param {RegExp} field */
  const sum = (field) => [...output.matchAll(field)].reduce((total, [, bytes]) => total + Number(bytes), 0);
  return { received: sum(/bytes_received:(\d+)/g), sent: sum(/bytes_acked:(\d+)/g) };
}
