import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { createServer, type AddressInfo, type ListenOptions, type Server } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SERVER_LIMITS } from './server-limits';

/**
 * Sockets that listen at the port. Node accepts one connection of each of them in an iteration of its event loop. Beside neighbours an iteration takes
 * up to 100 ms, and behind the thousand connections of one socket a caller's new connection then waits for seconds.
 */
const SOCKETS = 64;
/** Most connections of one socket that are accepted before it closes. */
const MOST_WAITING = 64;

export interface Where {
  port: number;
  host: string;
}

/**
 * Lets the application listen at a port, with several sockets where the system can.
 *
 * @returns closes the application; it resolves when the last connection has ended
 * @throws Error when another process listens at the port
 */
export async function listen(app: NestFastifyApplication, where: Where): Promise<() => Promise<void>> {
  const options = { ...where, backlog: SERVER_LIMITS.backlog };
  if (!(await canShare(where.host))) {
    await app.listen(options);
    return () => acceptWaiting(app.getHttpServer()).then(() => app.close());
  }
  await requireFree(where);
  await app.listen(shared(options));
  const server: HttpServer = app.getHttpServer();
  const { port } = server.address() as AddressInfo;
  const others = await Promise.all(Array.from({ length: SOCKETS - 1 }, () => another(server, shared({ ...options, port }))));
  return async () => {
    await acceptWaiting(server);
    await Promise.all([app.close(), closed(others)]);
  };
}

/** Accepts the connections that wait for it: when a socket closes, the system resets them. */
async function acceptWaiting(server: HttpServer): Promise<void> {
  let accepted = 0;
  const count = () => accepted++;
  server.on('connection', count);
  for (let before = -1, iterations = 0; accepted > before && iterations < MOST_WAITING; iterations++) {
    before = accepted;
    await setImmediate();
  }
  server.off('connection', count);
}

/** Whether several sockets can listen at one port. Linux spreads the connections over them, and Node has the option since 22.12. */
async function canShare(host: string): Promise<boolean> {
  const [first, second] = [createServer(), createServer()];
  try {
    await once(first.listen(shared({ host, port: 0 })), 'listening');
    await once(second.listen(shared({ host, port: (first.address() as AddressInfo).port })), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    await closed([first, second].filter(({ listening }) => listening));
  }
}

/** A port is shared with the sockets of other processes of the same user, too, and they would take a part of its connections. */
async function requireFree(where: Where): Promise<void> {
  const probe = createServer();
  await once(probe.listen(where), 'listening');
  await closed([probe]);
}

async function another(server: HttpServer, options: ListenOptions): Promise<Server> {
  // As Node creates the socket of an HTTP server.
  const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit('connection', socket));
  await once(other.listen(options), 'listening');
  return other.on('error', (error) => server.emit('error', error));
}

/** The types of Node 20 do not know the option. */
const shared = (options: ListenOptions): ListenOptions => Object.assign({ reusePort: true }, options);

async function closed(servers: Server[]): Promise<void> {
  const closing = servers.map((server) => once(server, 'close'));
  for (const server of servers) server.close();
  await Promise.all(closing);
}
