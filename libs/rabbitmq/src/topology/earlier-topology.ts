import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import type { ServiceName } from '@app/contracts/message';
import {
  deadQueue,
  earlierCommandQueue,
  eventQueue,
  laneZeroBindings,
  RETRY_DELAYS,
  SERVICES,
  suspectQueue,
  type BindingDeclaration,
} from './topology';

/** Where processes of versions without lanes put suspects. They need it while they run: a broker that has it is being upgraded. */
const earlierSuspectQueue = (service: ServiceName) => `${earlierCommandQueue(service)}.suspects`;
/** The same for retries. What is in there comes back by itself to the earlier queue of commands, which this version consumes. */
const earlierRetryQueues = (service: ServiceName) =>
  RETRY_DELAYS.map(({ name }) => `${earlierCommandQueue(service)}.retry.${name}`);

/** Queues that no process of this version uses, and where what is left in them has to go. */
export const EARLIER_QUEUES: readonly { name: string; moveTo?: string }[] = SERVICES.flatMap((service) => [
  { name: earlierSuspectQueue(service), moveTo: suspectQueue(service) },
  ...earlierRetryQueues(service).map((name) => ({ name })),
]);

/** There only while an upgrade is not finished. */
export const SIGN_OF_UPGRADE = earlierSuspectQueue(SERVICES[0]);

/** Bindings that stand in the way of this version. */
export const REMOVED_BINDINGS: readonly BindingDeclaration[] = SERVICES.map((service) => ({
  // The earlier queue dead-letters with this key. Full, the target would refuse, and stop it.
  exchange: 'dead',
  routingKey: earlierCommandQueue(service),
  queue: deadQueue(service),
}));

/** Lane 0 while processes of versions without lanes run: they consume no other queue. */
export const EARLIER_LANE_ZERO = laneZeroBindings(earlierCommandQueue);

/** Bindings that are needed only while such processes run: for their consumers, and to get the events of their users services. */
export const EARLIER_BINDINGS: readonly BindingDeclaration[] = [
  ...EARLIER_LANE_ZERO.filter(({ queue }) => SERVICES.some((service) => queue === earlierCommandQueue(service))),
  ...SERVICES.flatMap((service) =>
    SUBSCRIPTIONS[service].map(({ type }) => ({ exchange: 'events' as const, routingKey: type, queue: eventQueue(service) })),
  ),
];
