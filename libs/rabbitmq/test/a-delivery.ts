import type { BaseRpcContext } from '@nestjs/microservices';
import type { ConsumeMessage } from 'amqplib';
import { Delivery, type Acks } from '../src/delivery/delivery';
import { DeliveryContext } from '../src/delivery/delivery-context';
import type { ConsumedQueue } from '../src/topology/consumed-queues';

const QUEUE: ConsumedQueue = { name: 'users.commands.0', kind: 'commands', exchange: 'commands', prefetch: 64 };
const CONTEXT = { apiKey: 'key', pattern: 'users.add.v1', requestId: 'r', awaited: false, redelivered: false, attempt: 1 };

/**
 * A delivery that no broker has sent: the first one of a command in lane 0 without a waiting caller.
 *
 * @param context differences from that
 */
export function aDelivery(
  context: Partial<Omit<DeliveryContext, keyof BaseRpcContext>> = {},
  {
    queue,
    content = Buffer.from('{}'),
    acks = {},
  }: { queue?: Partial<ConsumedQueue>; content?: Buffer; acks?: Partial<Acks> } = {},
): Delivery {
  const message = { content, fields: {}, properties: {} } as ConsumeMessage;
  return new Delivery(
    { ...QUEUE, ...queue },
    message,
    { context: new DeliveryContext({ ...CONTEXT, ...context }) },
    acks as Acks,
  );
}
