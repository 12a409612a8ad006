import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { Client } from 'pg';

/** The one place that reaches beneath the public types of pg. pg-internals.int-spec.ts tests each assumption. */

interface Internals {
  /** Emits `errorMessage` with each error of the server. */
  connection: EventEmitter<{ errorMessage: [{ code?: string }] }> & { stream: Socket };
  /** False while a statement runs. */
  readyForQuery: boolean;
  /** Process that serves this connection, as the server has reported it with the key for cancel requests. */
  processID: number;
}

export const internalsOf = (client: Client): Internals => client as unknown as Internals;
