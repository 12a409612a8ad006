import type { Socket } from 'node:net';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';
import { TlsClient, type TlsClientConfig } from './tls-client';

/** Longest silence during a statement, in milliseconds. The server ends each statement earlier, so a longer silence means that it is gone. */
const SILENCE_MS = STATEMENT_TIMEOUT_MS + 1000;

interface Internals {
  connection: { stream: Socket };
  /** False while a statement runs. */
  readyForQuery: boolean;
}

/**
 * A connection that gives up on a silent server. Statement timeouts are enforced by the server only. After a failover, or when packets are
 * dropped, nothing else would end a statement: TCP retries for a quarter of an hour.
 */
export class ImpatientClient extends TlsClient {
  constructor(config?: TlsClientConfig) {
    super(config);
    const internals = this as unknown as Internals;
    this.once('connect', () => {
      const { stream } = internals.connection;
      stream.setTimeout(SILENCE_MS);
      // on(), because a callback passed to setTimeout() runs only once, and that may be while no statement runs.
      stream.on('timeout', () => {
        if (!internals.readyForQuery) stream.destroy(new Error('Connection terminated: the server is silent'));
      });
    });
  }
}
