import type { Socket } from 'node:net';
import { FairQueue } from '@app/runtime/fair-queue';
import { inNextIteration } from './in-next-iteration';
import { networkOf } from './network-of';
import { stopReading } from './stop-reading';

/** Requests of such connections that are parsed in one iteration before the other ones wait. Each takes some 8 µs, and beside neighbours 20. */
export const MOST_PARSED = 256;
/** Small pieces of bodies that take as long as one request. */
export const PIECES_OF_REQUEST = 16;
/** Most connections that are read again in one iteration in the order in which they came. */
const MOST_AT_ONCE = 64;

/** `next`: read again in this iteration. It must not wait twice for what it has sent. */
type State = 'read' | 'waiting' | 'next';

/**
 * Connections on which no call of a proved API key was answered yet. Node parses all that has arrived on all connections in one iteration of the event
 * loop, and calls in flight wait. When it is much, the connections here that were not read yet wait for later iterations, those of different addresses in
 * turn. The latest one of an address does not wait for all before it, because many clients may have one address.
 */
export class UnprovedConnections {
  private readonly states = new Map<Socket, State>();
  private readonly queue = new FairQueue<Socket>();
  private next: Socket[] = [];
  private parsed = 0;
  private atOnce = 1;
  private readonly schedule = inNextIteration(() => this.nextIteration());

  get size(): number {
    return this.states.size;
  }

  has(socket: Socket): boolean {
    return this.states.has(socket);
  }

  opened(socket: Socket): void {
    this.states.set(socket, 'read');
    // Node resumes reading when a body is wanted, and after a write is flushed.
    socket.on('resume', () => this.states.get(socket) === 'waiting' && stopReading(socket));
  }

  /** The connection has proved a key, or has ended. */
  left(socket: Socket): void {
    const state = this.states.get(socket);
    this.states.delete(socket);
    if (state === 'waiting') socket.resume();
  }

  /** A request was parsed, or as many small pieces of a body. */
  arrived(socket: Socket): void {
    // Node parses all that it has read of a connection, also after its end.
    if (!this.states.has(socket) && !socket.destroyed) return;
    this.schedule();
    if (++this.parsed === MOST_PARSED) this.stopOthers(socket);
  }

  private stopOthers(current: Socket): void {
    for (const [socket, state] of this.states) {
      if (state !== 'read' || socket === current || socket.isPaused()) continue;
      this.states.set(socket, 'waiting');
      stopReading(socket);
      this.queue.add(networkOf(socket), socket);
    }
  }

  private nextIteration(): void {
    for (const socket of this.next) if (this.states.has(socket)) this.states.set(socket, 'read');
    this.next = [];
    this.atOnce = this.parsed >= MOST_PARSED ? 1 : Math.min(2 * this.atOnce, MOST_AT_ONCE);
    this.parsed = 0;
    if (this.queue.isEmpty) return;
    this.schedule();
    this.readNext(() => this.queue.takeLast());
    for (let count = 0; count < this.atOnce; count++) this.readNext(() => this.queue.takeFirst(() => true));
  }

  private readNext(take: () => Socket | undefined): void {
    let socket = take();
    // Connections that have proved a key, or have ended, do not wait any more.
    while (socket && !this.states.has(socket)) socket = take();
    if (!socket) return;
    this.next.push(socket);
    this.states.set(socket, 'next');
    socket.resume();
  }
}
