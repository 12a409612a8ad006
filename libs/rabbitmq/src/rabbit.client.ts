import { ClientProxy, type ReadPacket, type WritePacket } from '@nestjs/microservices';
import type { Registry } from 'prom-client';
import type { Message } from '@app/contracts/message';
import type { ConnectionOptions, ConnectionState } from './connection';

export interface RabbitClientOptions {
  connection: ConnectionOptions;
  /** Most calls waiting for their reply; more are refused at once. Default 1000. */
  maxPending?: number;
  /** How long close() waits for pending calls, in milliseconds. Default 10,000. */
  drainTimeoutMs?: number;
  /** Default: prom-client's own register. */
  metrics?: Registry;
}

export interface CallOptions {
  /** The tenant. Required unless the message is tenantless. */
  apiKey?: string;
  requestId: string;
  /** From now to the deadline, in milliseconds. */
  timeoutMs: number;
  /** Identity of the effect, at most 255 bytes; a random UUID when absent. */
  messageId?: string;
  idempotencyKey?: string;
}

/** A successful reply. */
export interface Answer<Res> {
  /** Its body as it came. */
  readonly json: string;
  readonly headers: Readonly<Record<string, unknown>>;
  parse(): Res;
}

/** Calls services over the broker. */
export class RabbitClient extends ClientProxy {
  constructor(readonly options: RabbitClientOptions) {
    super();
  }

  /** Starts to connect; does not wait for the broker: see {@link check}. */
  async connect(): Promise<void> {}

  /** Refuses new calls, waits for the pending ones, disconnects. */
  async close(): Promise<void> {}

  /** Calls waiting for their reply. */
  get pending(): number {
    return 0;
  }

  get state(): ConnectionState {
    return 'down';
  }

  /** undefined when calls can be made, else a short reason without secrets. */
  check(): string | undefined {
    return 'not written yet';
  }

  /**
   * Publishes a message and waits for its reply.
   *
   * @throws ApiError UNAVAILABLE: certainly not executed, and never will be. DEADLINE_EXCEEDED: written, and the outcome is unknown.
   *   Any other status is the service's answer.
   */
  async call<Req, Res>(_message: Message<Req, Res>, _body: Req, _options: CallOptions): Promise<Answer<Res>> {
    throw new Error('Not written yet.');
  }

  unwrap<T>(): T {
    throw new Error('Not written yet.');
  }

  protected publish(_packet: ReadPacket, _callback: (packet: WritePacket) => void): () => void {
    throw new Error('Not written yet.');
  }

  protected dispatchEvent<T>(_packet: ReadPacket): Promise<T> {
    throw new Error('Not written yet.');
  }
}
