import type { Socket } from 'node:net';
import type { NestLogger } from '@app/runtime/logger';
import { connectionsClosed, connectionsRefused } from './metrics';

const LOG_EVERY_MS = 1000;

/**
 * `unread`: the client did not read its answers. `pipelined`: it sent too many requests without waiting for the answers. `pieces`: without a proved
 * API key it sent a body in many small pieces, and too many others did so, too. `memory`: of all that owed answers, its requests took most memory, and
 * all together too much. `idle`: it owed nothing for longest, and there were too many connections.
 */
export type CloseReason = 'unread' | 'pipelined' | 'pieces' | 'memory' | 'idle';

const HINT = 'Every place for a connection is taken: docs/runbooks/CallsRefused.md.';

const NONE: Readonly<Record<CloseReason, number>> = { unread: 0, pipelined: 0, pieces: 0, memory: 0, idle: 0 };
// A rate misses the first event of a counter that appears with it.
for (const reason of Object.keys(NONE)) connectionsClosed.inc({ reason }, 0);

/** Counts the connections that this process refused, or closed because of a limit. One line a second has their number and an example. */
export class ClosedConnections {
  private closed = { ...NONE };
  /** Address of the first one, which is that of a load balancer where there is one. */
  private address?: string;
  private timer?: NodeJS.Timeout;
  private refused = 0;

  constructor(private readonly logger: NestLogger) {}

  /** Call it before the socket is destroyed. @param open connections that have taken the place */
  refuse({ remoteAddress: address }: Socket, open: number): void {
    connectionsRefused.inc();
    if (this.refused++ > 0) return;
    setTimeout(() => {
      this.logger.warn({ msg: 'connections were refused', connections: this.refused, open, address, hint: HINT });
      this.refused = 0;
    }, LOG_EVERY_MS).unref();
  }

  /** Call it before the socket is destroyed: then its address is unknown. */
  count({ remoteAddress }: Socket, reason: CloseReason): void {
    connectionsClosed.inc({ reason });
    this.closed[reason]++;
    this.address ??= remoteAddress;
    this.timer ??= setTimeout(() => this.log(), LOG_EVERY_MS).unref();
  }

  private log(): void {
    this.logger.warn({
      msg: 'connections were closed because of a limit',
      connections: Object.values(this.closed).reduce((sum, count) => sum + count, 0),
      ...this.closed,
      address: this.address,
    });
    this.closed = { ...NONE };
    this.address = this.timer = undefined;
  }
}
