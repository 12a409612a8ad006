import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { FairQueue } from '@app/runtime/fair-queue';
import type { NestLogger } from '@app/runtime/logger';
import { bodyPauses } from './metrics';
import { stopReading } from './stop-reading';
import { PIECES_OF_REQUEST, type UnprovedConnections } from './unproved-connections';

/** A piece of a body below this size is small: it costs as much processor time as many kilobytes. */
const SMALL_BYTES = 256;
/** With so many small pieces a connection is not read until it is its turn. */
export const MOST_UNPAID = 512;
/** Small pieces that this process reads in a millisecond, a tenth of the time of its thread: each takes about half a microsecond. */
export const PIECES_PER_MS = 200;
/** Most connections of unproved callers that wait. A further one is closed: each keeps its request, and its end is not noticed. */
export const MOST_UNPROVED = 1000;
/** A connection that had to wait longer is named in the log. */
const LONG_WAIT_MS = 1000;
const LOG_EVERY_MS = 1000;
/** Most keys in a line. */
const MAX_KEYS = 20;

interface Reader {
  socket: Socket;
  /** The latest one of its connection, while it waits. */
  request?: IncomingMessage;
  /** Small pieces for which it has not waited yet. */
  unpaid: number;
  waitingSince?: number;
  /** While it is in the queue. */
  owner?: string;
}

/**
 * Limits the processor time for bodies in many small pieces, such as chunks of one byte. It refuses none: a connection that has sent many small
 * pieces is not read for as long as they are worth. API keys take turns, and all unproved callers together have one turn.
 */
export class SmallPieces {
  private readonly readers = new WeakMap<Socket, Reader>();
  private readonly queue = new FairQueue<Reader>();
  private unprovedWaiting = 0;
  private isPaying = false;
  private readonly slow = { pauses: 0, apiKeys: new Set<string>() };

  constructor(
    private readonly logger: NestLogger,
    private readonly unproved: Pick<UnprovedConnections, 'arrived'>,
    private readonly close: (socket: Socket) => void,
  ) {}

  arrived = (request: IncomingMessage, bytes: number): void => {
    if (bytes >= SMALL_BYTES) return;
    const { socket } = request;
    const reader = this.readers.get(socket) ?? this.added(socket);
    if (reader.unpaid % PIECES_OF_REQUEST === 0) this.unproved.arrived(socket);
    if (++reader.unpaid < MOST_UNPAID) return;
    reader.request = request;
    if (reader.waitingSince !== undefined) return;
    reader.waitingSince = performance.now();
    bodyPauses.inc();
    stopReading(socket);
    // Most credentials are proved by then.
    setImmediate(() => {
      this.join(reader, request.provedKey ?? '');
      this.next();
    });
  };

  private join(reader: Reader, owner: string): void {
    const { socket } = reader;
    if (socket.destroyed) return;
    if (owner === '' && ++this.unprovedWaiting > MOST_UNPROVED) {
      this.unprovedWaiting--;
      return this.close(socket);
    }
    reader.owner = owner;
    this.queue.add(owner, reader);
  }

  private left(reader: Reader): void {
    if (reader.owner === '') this.unprovedWaiting--;
    reader.owner = undefined;
  }

  private added(socket: Socket): Reader {
    const reader: Reader = { socket, unpaid: 0 };
    this.readers.set(socket, reader);
    // Node resumes reading when the body is wanted, and after a write is flushed.
    socket.on('resume', () => reader.waitingSince !== undefined && stopReading(socket));
    socket.once('close', () => {
      if (reader.owner === undefined) return;
      this.queue.remove(reader.owner, reader);
      this.left(reader);
    });
    return reader;
  }

  private next(): void {
    if (this.isPaying) return;
    let apiKey = '';
    const reader = this.queue.takeFirst((owner) => ((apiKey = owner), true));
    if (!reader) return;
    this.left(reader);
    this.isPaying = true;
    setTimeout(() => {
      this.isPaying = false;
      this.readOn(reader, apiKey);
      this.next();
    }, reader.unpaid / PIECES_PER_MS).unref();
  }

  private readOn(reader: Reader, apiKey: string): void {
    if (performance.now() - (reader.waitingSince ?? 0) > LONG_WAIT_MS) this.count(apiKey);
    reader.unpaid = 0;
    reader.waitingSince = undefined;
    const { request, socket } = reader;
    reader.request = undefined;
    // Else nobody wants its body yet, and Node resumes the socket when it is read.
    if (!request || request.complete || request.readableLength < request.readableHighWaterMark) socket.resume();
  }

  private count(apiKey: string): void {
    const { slow } = this;
    if (slow.pauses++ === 0) setTimeout(() => this.log(), LOG_EVERY_MS).unref();
    if (apiKey && slow.apiKeys.size < MAX_KEYS) slow.apiKeys.add(apiKey);
  }

  private log(): void {
    const { pauses, apiKeys } = this.slow;
    this.logger.warn({
      msg: 'bodies in many small pieces are read slowly',
      pauses,
      apiKeys: [...apiKeys],
      hint: 'A client that writes larger chunks is read at once. Other bodies are not affected.',
    });
    this.slow.pauses = 0;
    apiKeys.clear();
  }
}
