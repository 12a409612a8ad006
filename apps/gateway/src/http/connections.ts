import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Owed {
  response: ServerResponse;
  callbacks: (() => void)[];
}

/**
 * Which connections are open, and which responses each of them still owes.
 *
 * The response of a pipelined request has no socket until those before it are out, and never closes when the connection goes: so the end of
 * a response is taken from its connection as well.
 */
export class Connections {
  private readonly owed = new Map<Socket, Owed[]>();
  private readonly latest = new WeakMap<Socket, IncomingMessage>();

  watch(server: Server): void {
    server.on('connection', (socket) => {
      this.owed.set(socket, []);
      socket.once('close', () => {
        for (const { response } of [...(this.owed.get(socket) ?? [])]) this.settle(socket, response);
        this.owed.delete(socket);
      });
    });
    // Before the listener that handles the request, because that one may answer at once.
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      this.owed.get(request.socket)?.push({ response, callbacks: [] });
      this.latest.set(request.socket, request);
      response.once('close', () => this.settle(request.socket, response));
    });
  }

  /** Calls back once when the response has closed, aborted or not; at once when it has already. */
  onClosed(response: ServerResponse, callback: () => void): void {
    const owed = this.owed.get(response.req.socket)?.findLast((one) => one.response === response);
    if (owed) owed.callbacks.push(callback);
    else callback();
  }

  /** The response that the connection owes first, if any. */
  firstOwed(socket: Socket): ServerResponse | undefined {
    return this.owed.get(socket)?.at(0)?.response;
  }

  /** Whether the latest request of the connection is still arriving. */
  isArriving(socket: Socket): boolean {
    return this.latest.get(socket)?.complete === false;
  }

  /** Closes every connection that owes nothing, the ones that never asked for anything included: the server's own close waits for those. */
  closeIdle(): void {
    for (const [socket, owed] of this.owed) if (owed.length === 0) socket.destroy();
  }

  /** Closes every connection whose request is still on its way. */
  closeArriving(): void {
    for (const socket of this.owed.keys()) if (this.isArriving(socket)) socket.destroy();
  }

  private settle(socket: Socket, response: ServerResponse): void {
    const owed = this.owed.get(socket) ?? [];
    const place = owed.findIndex((one) => one.response === response);
    if (place < 0) return;
    const [{ callbacks }] = owed.splice(place, 1);
    for (const callback of callbacks) callback();
  }
}
