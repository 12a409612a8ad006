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

/** Suspect queue of versions without lanes. Their processes need it while they run. A broker that has it is being upgraded. */
const earlierSuspectQueue = (service: ServiceName) => `${earlierCommandQueue(service)}.suspects`;
/** Retry queues of versions without lanes. Their messages expire into the earlier command queue, which this version consumes. */
const earlierRetryQueues = (service: ServiceName) =>
  RETRY_DELAYS.map(({ name }) => `${earlierCommandQueue(service)}.retry.${name}`);

/** Queues that this version does not use, and the target for messages that are left in them. */
export const EARLIER_QUEUES: readonly { name: string; moveTo?: string }[] = SERVICES.flatMap((service) => [
  { name: earlierSuspectQueue(service), moveTo: suspectQueue(service) },
  ...earlierRetryQueues(service).map((name) => ({ name })),
]);

/** This queue exists only while an upgrade is not finished. */
export const SIGN_OF_UPGRADE = earlierSuspectQueue(SERVICES[0]);

/** Bindings of earlier versions that break this version. */
export const REMOVED_BINDINGS: readonly BindingDeclaration[] = SERVICES.map((service) => ({
  // The earlier queue dead-letters with this key. This target refuses when it is full, and would block the earlier queue.
  exchange: 'dead',
  routingKey: earlierCommandQueue(service),
  queue: deadQueue(service),
}));

/** Bindings of lane 0 while processes of versions without lanes run: they consume no other command queue. */
export const EARLIER_LANE_ZERO = laneZeroBindings(earlierCommandQueue);

/** Bindings that only processes of versions without lanes need: for their consumers, and for events that their users service publishes. */
export const EARLIER_BINDINGS: readonly BindingDeclaration[] = [
  ...EARLIER_LANE_ZERO.filter(({ queue }) => SERVICES.some((service) => queue === earlierCommandQueue(service))),
  ...SERVICES.flatMap((service) =>
    SUBSCRIPTIONS[service].map(({ type }) => ({ exchange: 'events' as const, routingKey: type, queue: eventQueue(service) })),
  ),
];
