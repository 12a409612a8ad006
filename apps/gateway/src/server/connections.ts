import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { NestLogger } from '@app/runtime/logger';
import { dropRestAfter } from './body-pieces';
import { ClosedConnections, type CloseReason } from './closed-connections';
import type { Connection, Owed } from './connection';
import { IdleConnections } from './idle-connections';
import { inNextIteration } from './in-next-iteration';
import { connectionsOpen } from './metrics';
import { Progress } from './progress';
import { memoryOf, ReadingInIteration } from './request-memory';
import { standBefore } from './stand-before';
import type { ServerLimits } from './server-limits';
import { stopReading } from './stop-reading';
import { UnprovedConnections } from './unproved-connections';

/** Part of maxOwedBytes that stays when connections are closed, so that this is not needed for each request. */
const KEPT_PART = 7 / 8;

/**
 * Tracks open connections and the responses that each one still owes. A connection that owes many responses starts no further request and is not
 * read. A connection whose client does not read its answers is closed.
 *
 * The response of a pipelined request has no socket until the earlier responses are sent, and emits no close event when the connection is lost.
 * So the end of a response is also detected by its connection.
 */
export class Connections {
  private readonly open = new Map<Socket, Connection>();
  private readonly idle = new IdleConnections();
  private readonly closed: ClosedConnections;
  private queued = 0;
  private bytes = 0;
  private readonly reading: ReadingInIteration;
  private isClosing = false;
  private hasStopped = false;
  /** In an iteration in which a search for the largest connections found too few: the mean. Smaller ones stay. */
  private searchedMean?: number;
  private readonly forgetSearch = inNextIteration(() => (this.searchedMean = undefined));

  /** @param unproved which of the connections wait when much is parsed */
  constructor(
    private readonly limits: ServerLimits,
    logger: NestLogger,
    private readonly unproved = new UnprovedConnections(),
  ) {
    this.closed = new ClosedConnections(logger);
    this.reading = new ReadingInIteration(limits.maxReadBytes);
  }

  /** @param server its current request listeners run after this one */
  watch(server: Server): void {
    server.on('connection', (socket) => this.opened(socket));
    standBefore(server, (request, response, begin) => this.arrived(request, response, begin));
    // One timer for all connections, because a timer for each response would cost every call.
    const timer = setInterval(() => {
      if (this.isClosing) this.closeSlow();
      this.closeUnread();
      if (this.hasStopped && this.open.size === 0) clearInterval(timer);
    }, this.limits.checkEveryMs).unref();
    // Connections of other listening sockets may be open then.
    server.once('close', () => (this.hasStopped = true));
  }

  /** Calls back once the response has closed, completed or aborted; at once if it has closed already. */
  onClosed(response: ServerResponse, callback: () => void): void {
    const owed = this.open.get(response.req.socket)?.owed.findLast((one) => one.response === response);
    if (owed) owed.callbacks.push(callback);
    else callback();
  }

  /** The responses that the connection owes, in the order of their requests. */
  owedBy(socket: Socket): ServerResponse[] {
    return this.open.get(socket)?.owed.map(({ response }) => response) ?? [];
  }

  /** Ends the connection behind this response, if no later one is owed. It begins no further request then. @returns whether it ends there */
  endsBehind(response: ServerResponse): boolean {
    const connection = this.open.get(response.req.socket);
    if (connection?.owed.at(-1)?.response !== response) return false;
    return (connection.isEnding = true);
  }

  /** Whether the latest request of the connection is still arriving. */
  isArriving(socket: Socket): boolean {
    return this.open.get(socket)?.latest?.complete === false;
  }

  /** A call on this connection has proved its key: it is read like those that were answered. */
  proved(socket: Socket): void {
    this.unproved.left(socket);
  }

  /** Closes every connection that is idle, also those that never sent a request: the server's own close waits for these. */
  closeIdle(): void {
    for (const [socket, { owed }] of this.open) if (owed.length === 0 && !this.isArriving(socket)) socket.destroy();
  }

  /** Closes every connection that is idle, whose request is still arriving, or whose client does not read its answers, from now on at each check. */
  closeSlow(): void {
    this.isClosing = true;
    // An answer that began before the drain has told its client that the connection stays open.
    this.closeIdle();
    for (const [socket, { progress }] of this.open) if (this.isArriving(socket) || progress.isWaiting) socket.destroy();
  }

  private opened(socket: Socket): void {
    // The server's own limit counts the connections of one listening socket.
    if (this.open.size >= this.limits.maxConnections && !this.giveUpIdle()) {
      this.closed.refuse(socket, this.open.size);
      return void socket.destroy();
    }
    const connection: Connection = { owed: [], queued: 0, isEnding: false, bytes: 0, progress: new Progress(socket) };
    this.open.set(socket, connection);
    connectionsOpen.inc();
    this.unproved.opened(socket);
    this.idle.add(socket, true);
    // Node resumes reading for the body of a started request, and after a write is flushed: pause again.
    socket.on('resume', () => (connection.queued > 0 || this.reading.isStopped(socket)) && stopReading(socket));
    // Node makes an error for each request that it aborts then. Nobody reads their stacks, and thousands of them take most of a second.
    const { stackTraceLimit } = Error;
    socket.prependOnceListener('close', () => (Error.stackTraceLimit = 0));
    socket.once('close', () => {
      Error.stackTraceLimit = stackTraceLimit;
      this.open.delete(socket);
      this.idle.delete(socket);
      this.unproved.left(socket);
      connectionsOpen.dec();
      this.release(connection);
      for (const { callbacks } of connection.owed) for (const callback of callbacks) callback();
    });
  }

  private arrived(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    const { socket } = request;
    this.unproved.arrived(socket);
    const connection = this.open.get(socket);
    const bytes = memoryOf(request);
    this.reading.arrived(bytes, this.open.keys());
    // Node emits the requests that it has read of a connection that was just closed, or has sent its last answer, too.
    if (!connection || !socket.writable) return;
    // Its answer would be lost, or there is no time for it.
    if (connection.isEnding || this.isClosing) return this.wait(socket, connection);
    connection.latest = request;
    const owed: Owed = { response, callbacks: [], bytes };
    if (connection.owed.push(owed) === 1) this.idle.delete(socket);
    connection.bytes += bytes;
    this.bytes += bytes;
    if (this.bytes > this.limits.maxOwedBytes) this.closeLargest(socket);
    if (socket.destroyed) return;
    response.once('close', () => this.settle(socket, connection, owed));
    dropRestAfter(response);
    if (connection.owed.length <= this.limits.maxOwed) return begin();

    // Node emits all requests of the bytes that it has read (about 64 KiB), even on a paused socket.
    owed.begin = begin;
    this.wait(socket, connection);
  }

  private wait(socket: Socket, connection: Connection): void {
    connection.queued++;
    stopReading(socket);
    if (++this.queued > this.limits.maxQueued) this.close(this.longest(socket), 'pipelined');
  }

  private settle(socket: Socket, connection: Connection, owed: Owed): void {
    const place = connection.owed.indexOf(owed);
    if (place < 0 || !this.open.has(socket)) return;
    connection.owed.splice(place, 1);
    if (connection.owed.length === 0) this.idle.add(socket, this.unproved.has(socket));
    const { req } = owed.response;
    if (req.complete) this.forget(connection, req, owed.bytes);
    else req.once('close', () => this.forget(connection, req, owed.bytes));
    for (const callback of owed.callbacks) callback();
    if (connection.queued === 0 || !socket.writable) return;
    const next = connection.owed.find(({ begin }) => begin);
    const begin = next?.begin;
    if (!next || !begin) return;
    next.begin = undefined;
    this.queued--;
    if (--connection.queued === 0) socket.resume();
    begin();
  }

  private forget(connection: Connection, request: IncomingMessage, bytes: number): void {
    if (connection.latest === request) connection.latest = undefined;
    // Nothing of a connection that was just closed is counted any more.
    if (connection.bytes === 0) return;
    connection.bytes -= bytes;
    this.bytes -= bytes;
  }

  /** The connection with the most requests that wait: a few such connections must not cost another one its place. */
  private longest(latest: Socket): Socket {
    let longest = latest;
    let most = this.open.get(latest)?.queued ?? 0;
    for (const [socket, { queued }] of this.open) {
      if (queued > most) [longest, most] = [socket, queued];
    }
    return longest;
  }

  /**
   * Closes connections whose requests take most memory. Below the mean are at least those that owe one answer to a request of usual size. A search that
   * found too few is not repeated in this iteration: then only the latest connection may be closed.
   */
  private closeLargest(latest: Socket): void {
    if (this.searchedMean !== undefined) {
      if ((this.open.get(latest)?.bytes ?? 0) >= this.searchedMean) this.close(latest, 'memory');
      return;
    }
    const mean = Math.floor(this.bytes / this.open.size);
    const large = [...this.open].filter(([, { bytes }]) => bytes >= mean);
    for (const [socket] of large.sort(([, first], [, second]) => second.bytes - first.bytes)) {
      if (this.bytes <= KEPT_PART * this.limits.maxOwedBytes) return;
      this.close(socket, 'memory');
    }
    this.searchedMean = mean;
    this.forgetSearch();
  }

  private closeUnread(): void {
    const now = performance.now();
    // Also of one that owes no response: Node takes the answer to CONNECT for none, and gives that connection no timeout.
    for (const [socket, { progress }] of this.open) if (!progress.isEnough(now, this.limits)) this.close(socket, 'unread');
  }

  /** Closes an idle connection, so that a new one has its place. @returns false when there is none */
  private giveUpIdle(): boolean {
    const first = this.idle.first(this.unproved.size <= this.limits.fewUnproved);
    if (first) this.close(first, 'idle');
    return first !== undefined;
  }

  close(socket: Socket, reason: CloseReason): void {
    this.closed.count(socket, reason);
    this.idle.delete(socket);
    const connection = this.open.get(socket);
    // At once: further requests and connections may arrive before its end is reported.
    if (connection) this.release(connection);
    socket.destroy();
    this.unproved.left(socket);
  }

  private release(connection: Connection): void {
    this.queued -= connection.queued;
    this.bytes -= connection.bytes;
    connection.queued = connection.bytes = 0;
  }
}
