import { internalsOf } from './pg-internals';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';
import { WritableClient, type WritableClientConfig } from './writable-client';

/** Longest silence during a statement, in milliseconds. The server ends each statement earlier, so a longer silence means that it is gone. */
const SILENCE_MS = STATEMENT_TIMEOUT_MS + 1000;

/**
 * A connection that gives up on a silent server. Statement timeouts are enforced by the server only. After a failover, or when packets are
 * dropped, nothing else would end a statement: TCP retries for a quarter of an hour.
 */
export class ImpatientClient extends WritableClient {
  constructor(config: WritableClientConfig, silenceMs = SILENCE_MS) {
    super(config);
    this.once('connect', () => {
      const { stream } = internalsOf(this).connection;
      stream.setTimeout(silenceMs);
      // on(), because a callback passed to setTimeout() runs only once, and that may be while no statement runs.
      stream.on('timeout', () => {
        if (this.idle) return;
        const reason = 'the server is silent';
        this.cutOff(new Error(`Connection terminated: ${reason}`));
        // Others may only wait: for example for a synchronous standby.
        this.lost(reason, 'idle');
      });
    });
  }
}
