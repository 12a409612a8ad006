import type { Socket } from 'node:net';
import { Client, type ClientConfig } from 'pg';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';

/** The server ends every statement before that: who is silent for longer is gone. */
const SILENCE_MS = STATEMENT_TIMEOUT_MS + 1000;

interface Internals {
  connection: { stream: Socket };
  /** False while a statement runs. */
  readyForQuery: boolean;
}

/**
 * A connection that gives up on a silent server. The timeouts of statements are kept by the server, and nothing else ends a statement whose
 * server has failed over or whose packets are swallowed on the way: TCP goes on trying for a quarter of an hour.
 */
export class ImpatientClient extends Client {
  constructor(config?: ClientConfig) {
    super(config);
    const internals = this as unknown as Internals;
    this.once('connect', () => {
      const { stream } = internals.connection;
      stream.setTimeout(SILENCE_MS);
      // Given to setTimeout() it would be called once only, and that may be while nothing is asked.
      stream.on('timeout', () => {
        if (!internals.readyForQuery) stream.destroy(new Error('Connection terminated: the server is silent'));
      });
    });
  }
}
