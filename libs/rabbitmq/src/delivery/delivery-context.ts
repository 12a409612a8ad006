import { BaseRpcContext } from '@nestjs/microservices';
import type { Span } from '@opentelemetry/api';

/**
 * Context of a delivery, which a handler gets through `@Ctx()`: everything but the body. Validated: every string fits into an AMQP property or
 * header again.
 */
export class DeliveryContext extends BaseRpcContext<[]> {
  /** The tenant; empty for a message that needs no tenant. */
  readonly apiKey: string;
  /** Identity of the effect. A redelivery has the same messageId. */
  readonly messageId?: string;
  /** The caller's request id, or a new one. 1-128 printable ASCII characters. */
  readonly requestId: string;
  /** Epoch milliseconds after which nothing may be executed. Only set when a caller waits. */
  readonly deadline?: number;
  /** 1-255 printable ASCII characters. */
  readonly idempotencyKey?: string;
  /** Whether a caller waits for the reply. */
  readonly awaited: boolean;
  /** Whether the broker may have delivered the message before. */
  readonly redelivered: boolean;
  /** 1 for the first attempt. Each retry adds 1. */
  readonly attempt: number;
  /** Routing key that the message was first published with. */
  readonly pattern: string;
  /** Name that the publisher gives itself; not checked. */
  readonly appId?: string;
  /** Broker account of the publisher, checked by the broker. */
  readonly userId?: string;
  /** The span of this delivery; undefined while tracing is off. */
  span?: Span;
  /**
   * Rows that its handler changed or looked at. A handler whose work does not follow from the size of the message states it, and its tenant
   * pays for it with its turns.
   */
  rows?: number;
  /** Of these, the rows that stand for work which the next delivery of the tenant will hardly have, too. They are paid for, and not expected again. */
  oneTimeRows?: number;

  constructor(properties: Omit<DeliveryContext, keyof BaseRpcContext>) {
    super([]);
    Object.assign(this, properties);
  }
}
