import { EventEmitter } from 'node:events';

export interface ConnectionOptions {
  /** `amqp:` or `amqps:`, with credentials and virtual host. */
  url: string;
  /** PEM file of the authority that signed the broker's certificate; absent: the system's. */
  caFile?: string;
  /** Shown in the broker's list of connections. */
  name: string;
}

/** `blocked`: the broker is short of memory or disk and takes no messages. */
export type ConnectionState = 'up' | 'blocked' | 'down';

/** One AMQP connection that comes back for ever. */
export class RabbitConnection extends EventEmitter {
  constructor(readonly options: ConnectionOptions) {
    super();
  }

  get state(): ConnectionState {
    throw new Error('Not written yet.');
  }
}
