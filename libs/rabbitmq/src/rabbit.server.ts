import { Server, type CustomTransportStrategy } from '@nestjs/microservices';
import type { Registry } from 'prom-client';
import type { ServiceName } from '@app/contracts/message';
import type { ConnectionOptions } from './connection';

export type QueueKind = 'commands' | 'queries';

export interface RabbitServerOptions {
  connection: ConnectionOptions;
  service: ServiceName;
  /** Which of the service's queues this process consumes. */
  queues: readonly QueueKind[];
  /** Most deliveries handled at once, for each queue. */
  prefetch: Readonly<Record<QueueKind, number>>;
  /** Whether an error says that the database is away. */
  isUnavailable?: (error: unknown) => boolean;
  /** Resolves when the database is back; rejects while it is not. */
  probe?: () => Promise<void>;
  /** Tries of a command that nobody waits for before it goes to the dead letters. Default 8, over 21 minutes. */
  maxAttempts?: number;
  /** How long close() waits for running handlers, in milliseconds. Default 10,000. */
  drainTimeoutMs?: number;
  /** Default: prom-client's own register. */
  metrics?: Registry;
}

/** Nest transport: consumes the service's queues. Handlers are ordinary `@MessagePattern` methods. */
export class RabbitServer extends Server implements CustomTransportStrategy {
  constructor(readonly options: RabbitServerOptions) {
    super();
  }

  /** Checks the handlers and starts to connect; does not wait for the broker: see {@link check}. */
  listen(callback: (error?: unknown) => void): void {
    callback(new Error('Not written yet.'));
  }

  /** Stops consuming, lets running handlers finish, flushes replies and acks, disconnects. */
  async close(): Promise<void> {}

  /** undefined when every queue is consumed, else a short reason without secrets. */
  check(): string | undefined {
    return 'not written yet';
  }

  on(): never {
    throw new Error('RabbitServer has no events: use check() and the metrics.');
  }

  unwrap<T>(): T {
    throw new Error('RabbitServer has no single connection to unwrap.');
  }
}
