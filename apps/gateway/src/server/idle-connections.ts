import type { Socket } from 'node:net';

/** Connections that owe no answer, in the order in which they became so. Also those on which headers have begun: Node does not show these. */
export class IdleConnections {
  private readonly unproved = new Set<Socket>();
  private readonly proved = new Set<Socket>();

  /** @param isUnproved whether no key was proved on it */
  add(socket: Socket, isUnproved: boolean): void {
    (isUnproved ? this.unproved : this.proved).add(socket);
  }

  delete(socket: Socket): void {
    if (!this.proved.delete(socket)) this.unproved.delete(socket);
  }

  /** The one that has been idle for longest, of those without a proved key if there are any. */
  get first(): Socket | undefined {
    return this.unproved.values().next().value ?? this.proved.values().next().value;
  }
}
