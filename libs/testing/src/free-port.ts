import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports of outgoing connections, as in scripts/processes/free-port.mjs, which Jest cannot import.
const FIRST_PORT = 20_000;
const LAST_PORT = 32_767;

/** The server that a port was found for may not listen yet. */
const given = new Set<number>();

/** A port of 127.0.0.1 that no program listens on, another one each time. An outgoing connection cannot take it meanwhile. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT + 1);
    if (given.has(port)) continue;
    const server = createServer().listen({ port, host: '127.0.0.1', exclusive: true });
    const listening = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!listening) continue;
    server.close();
    await once(server, 'close');
    given.add(port);
    return port;
  }
}
