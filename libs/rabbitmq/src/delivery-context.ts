import { BaseRpcContext } from '@nestjs/microservices';

/** What is known of a delivery beside its body. Validated: every string fits where the protocol may put it again. */
export interface DeliveryProperties {
  /** The tenant; empty for a message that needs none. */
  apiKey: string;
  /** Identity of the effect; a redelivery has the same. */
  messageId?: string;
  /** The caller's, or a new one. 1-128 printable ASCII characters. */
  requestId: string;
  /** Epoch milliseconds after which nothing may be executed. Only when somebody waits. */
  deadline?: number;
  /** 1-255 printable ASCII characters. */
  idempotencyKey?: string;
  /** Whether somebody waits for the reply. */
  awaited: boolean;
  /** Whether the broker may have delivered the message before. */
  redelivered: boolean;
  /** 1 at first, one more for each retry. */
  attempt: number;
  /** Routing key the message was first published with. */
  pattern: string;
  /** As the publisher calls itself. */
  appId?: string;
  /** Broker account of the publisher, checked by the broker. */
  userId?: string;
}

export interface DeliveryContext extends Readonly<DeliveryProperties> {}

/** What a handler gets through `@Ctx()`. */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- the constructor assigns every property of the interface
export class DeliveryContext extends BaseRpcContext<[]> {
  constructor(properties: DeliveryProperties) {
    super([]);
    Object.assign(this, properties);
  }
}
