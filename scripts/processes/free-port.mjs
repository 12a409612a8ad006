import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';

// Below the ports that systems give to outgoing connections (Linux from 32768, macOS from 49152): such a port may be taken by any
// connection before the server that it was found for listens. libs/testing/src/free-port.ts uses the same.
const FIRST_PORT = 20_000;
const LAST_PORT = 32_767;

/**
 * Tries to listen, as a server would, and lets go again.
 * @param {number} port
 * @param {string} [host] all addresses when absent
 * @returns {Promise<number>} the port; rejects with the system's error when it cannot be had
 */
export function probePort(port, host) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host, exclusive: true }, () => {
      const { port: bound } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(bound));
    });
  });
}

/**
 * Distinct free ports on 127.0.0.1.
 * @param {(number | undefined)[]} preferred one entry per wanted port; a port that is free is kept, else another is found
 * @returns {Promise<number[]>}
 */
export async function freePorts(preferred) {
  /** @type {number[]} */
  const found = [];
  for (const wish of preferred) {
    /** @type {number} */
    let port = wish && !found.includes(wish) ? await probePort(wish, '127.0.0.1').catch(() => 0) : 0;
    while (port === 0 || found.includes(port))
      port = await probePort(randomInt(FIRST_PORT, LAST_PORT + 1), '127.0.0.1').catch(() => 0);
    found.push(port);
  }
  return found;
}

/**
 * @param {string} host
 * @param {number} port
 * @param {number} [timeoutMs]
 * @returns {Promise<NodeJS.ErrnoException | undefined>} why no connection could be opened; undefined when one could
 */
export function connectionFailure(host, port, timeoutMs = 3_000) {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    /** @param {NodeJS.ErrnoException | undefined} error */
    const settle = (error) => {
      socket.destroy();
      resolve(error);
    };
    socket.setTimeout(timeoutMs, () => settle(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })));
    socket.once('connect', () => settle(undefined));
    socket.once('error', settle);
  });
}
