import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { inNextIteration } from './in-next-iteration';
import { stopReading } from './stop-reading';

/** A request that waits, with its response and its places in queues, beside its headers. */
const REQUEST_BYTES = 2560;
/** A name or a value of a header, beside its text: in the list of all, and in the object of them. */
const STRING_BYTES = 96;

/** Bytes of memory that a request takes while it waits, without its body. */
export function memoryOf({ url = '', rawHeaders }: IncomingMessage): number {
  let bytes = REQUEST_BYTES + url.length + rawHeaders.length * STRING_BYTES;
  for (const { length } of rawHeaders) bytes += length;
  return bytes;
}

/**
 * Stops reading all connections until the next iteration of the event loop, once the requests of one iteration take much memory: Node releases nothing
 * of a connection before, not even of a closed one.
 */
export class ReadingInIteration {
  private bytes = 0;
  private stopped = new Set<Socket>();
  private readonly schedule = inNextIteration(() => this.nextIteration());

  /** @param most bytes of memory */
  constructor(private readonly most: number) {}

  isStopped(socket: Socket): boolean {
    return this.stopped.has(socket);
  }

  /** A request has arrived. @param open connections that are stopped then */
  arrived(bytes: number, open: Iterable<Socket>): void {
    this.bytes += bytes;
    this.schedule();
    if (this.bytes <= this.most) return;
    // Connections may open in this iteration, too.
    this.bytes = 0;
    for (const socket of open) {
      if (socket.isPaused()) continue;
      this.stopped.add(socket);
      stopReading(socket);
    }
  }

  private nextIteration(): void {
    this.bytes = 0;
    const { stopped } = this;
    this.stopped = new Set();
    for (const socket of stopped) socket.resume();
  }
}
