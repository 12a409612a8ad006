import type { Socket } from 'node:net';
import type { NestLogger } from '@app/runtime/logger';
import { connectionsClosed } from './metrics';

const LOG_EVERY_MS = 1000;

/** `unread`: the client did not read its answers. `pipelined`: it sent too many requests without waiting for the answers. */
export type CloseReason = 'unread' | 'pipelined';

/** Counts the connections that this process closed before their clients had all answers. One line a second has their number and an example. */
export class ClosedConnections {
  private closed: Record<CloseReason, number> = { unread: 0, pipelined: 0 };
  /** Address of the first one, which is that of a load balancer where there is one. */
  private address?: string;
  private timer?: NodeJS.Timeout;

  constructor(private readonly logger: NestLogger) {}

  /** Call it before the socket is destroyed: then its address is unknown. */
  count({ remoteAddress }: Socket, reason: CloseReason): void {
    connectionsClosed.inc({ reason });
    this.closed[reason]++;
    this.address ??= remoteAddress;
    this.timer ??= setTimeout(() => this.log(), LOG_EVERY_MS).unref();
  }

  private log(): void {
    const { unread, pipelined } = this.closed;
    this.logger.warn({
      msg: 'connections were closed: their clients did not read the answers, or sent too many requests before them',
      connections: unread + pipelined,
      unread,
      pipelined,
      address: this.address,
    });
    this.closed = { unread: 0, pipelined: 0 };
    this.address = this.timer = undefined;
  }
}
