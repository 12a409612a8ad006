import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Gives every request of a server to one listener, which hands it on to all that have been listening before, now or later or not at all. */
export function standBefore(
  server: Server,
  listener: (request: IncomingMessage, response: ServerResponse, next: () => void) => void,
): void {
  const behind = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
  server.removeAllListeners('request');
  server.on('request', (request, response) =>
    listener(request, response, () => {
      for (const one of behind) one.call(server, request, response);
    }),
  );
}
