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

  /** The one that has been idle for longest: of those with a proved key, or else of those without one. If there is none of them, one of the others. */
  first(isProved: boolean): Socket | undefined {
    const [wanted, others] = isProved ? [this.proved, this.unproved] : [this.unproved, this.proved];
    return wanted.values().next().value ?? others.values().next().value;
  }
}
