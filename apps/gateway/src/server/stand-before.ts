import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Puts a listener before the current request listeners of a server. It calls `next` to pass a request on, now, later or never. */
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
