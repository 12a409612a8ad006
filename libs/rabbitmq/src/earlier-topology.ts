import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import type { ServiceName } from '@app/contracts/message';
import { commandQueue, deadQueue, eventQueue, RETRY_DELAYS, SERVICES, suspectQueue, type BindingDeclaration } from './topology';

/** Where processes of versions without lanes put suspects. They need it while they run. */
export const earlierSuspectQueue = (service: ServiceName) => `${commandQueue(service)}.suspects`;
/** The same for retries. What is in there comes back to lane 0 by itself. */
const earlierRetryQueues = (service: ServiceName) => RETRY_DELAYS.map(({ name }) => `${commandQueue(service)}.retry.${name}`);

/** Queues that no process of this version uses, and where what is left in them has to go. */
export const EARLIER_QUEUES: readonly { name: string; moveTo?: string }[] = SERVICES.flatMap((service) => [
  { name: earlierSuspectQueue(service), moveTo: suspectQueue(service) },
  ...earlierRetryQueues(service).map((name) => ({ name })),
]);

/** Bindings that stand in the way of this version. */
export const REMOVED_BINDINGS: readonly BindingDeclaration[] = SERVICES.map((service) => ({
  // Lane 0 dead-letters with this key. Full, the target would refuse, and stop the lane.
  exchange: 'dead',
  routingKey: commandQueue(service),
  queue: deadQueue(service),
}));

/** Bindings by which this version gets the events of users services without lanes. */
export const EARLIER_BINDINGS: readonly BindingDeclaration[] = SERVICES.flatMap((service) =>
  SUBSCRIPTIONS[service].map(({ type }) => ({ exchange: 'events' as const, routingKey: type, queue: eventQueue(service) })),
);
