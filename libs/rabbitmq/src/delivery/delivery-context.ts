import { BaseRpcContext } from '@nestjs/microservices';

/**
 * What a handler gets through `@Ctx()`: what is known of a delivery beside its body. Validated: every string fits where the protocol may
 * put it again.
 */
export class DeliveryContext extends BaseRpcContext<[]> {
  /** The tenant; empty for a message that needs none. */
  readonly apiKey: string;
  /** Identity of the effect; a redelivery has the same. */
  readonly messageId?: string;
  /** The caller's, or a new one. 1-128 printable ASCII characters. */
  readonly requestId: string;
  /** Epoch milliseconds after which nothing may be executed. Only when somebody waits. */
  readonly deadline?: number;
  /** 1-255 printable ASCII characters. */
  readonly idempotencyKey?: string;
  /** Whether somebody waits for the reply. */
  readonly awaited: boolean;
  /** Whether the broker may have delivered the message before. */
  readonly redelivered: boolean;
  /** 1 at first, one more for each retry. */
  readonly attempt: number;
  /** Routing key the message was first published with. */
  readonly pattern: string;
  /** As the publisher calls itself. */
  readonly appId?: string;
  /** Broker account of the publisher, checked by the broker. */
  readonly userId?: string;

  constructor(properties: Omit<DeliveryContext, keyof BaseRpcContext>) {
    super([]);
    Object.assign(this, properties);
  }
}
