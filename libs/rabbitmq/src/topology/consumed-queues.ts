import type { ServiceName } from '@app/contracts/message';
import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import {
  againQueue,
  callQueryQueue,
  callQueue,
  commandQueue,
  earlierCommandQueue,
  eventQueue,
  LANE_NUMBERS,
  LANES,
  queryQueue,
  suspectQueue,
  type ExchangeName,
} from './topology';

export type QueueKind = 'commands' | 'queries' | 'events';

/** A queue that a service consumes. */
export interface ConsumedQueue {
  readonly name: string;
  readonly kind: QueueKind;
  /** The exchange that its messages were published to, which is their share of the consumer: for what comes back, that of its lane. */
  readonly lane: ExchangeName;
  /** Most deliveries in hand, those that wait for their turn included. */
  readonly prefetch: number;
  /** Whether a message is handled with no other command in the process. */
  readonly alone?: boolean;
}

/** Deliveries in hand of one lane: so many at most wait in a process that is slow, while another one has nothing to do. */
const LANE_PREFETCH = 64;
/** Queries of all tenants: enough that those of one who asks seldom are among them. */
const QUERY_PREFETCH = 256;
const EVENT_PREFETCH = 16;

/** @param commands most commands in hand that the gateway or a service waits for */
export function consumedQueues(service: ServiceName, kinds: readonly QueueKind[], commands: number): ConsumedQueue[] {
  const inLane = Math.min(LANE_PREFETCH, commands);
  const ofKind: Record<QueueKind, () => ConsumedQueue[]> = {
    commands: () => [
      { name: callQueue(service), kind: 'commands', lane: 'calls', prefetch: commands },
      ...LANE_NUMBERS.map((lane) => ({
        name: commandQueue(service, lane),
        kind: 'commands' as const,
        lane: LANES[lane],
        prefetch: inLane,
      })),
      { name: earlierCommandQueue(service), kind: 'commands', lane: LANES[0], prefetch: inLane },
      { name: againQueue(service), kind: 'commands', lane: LANES[0], prefetch: inLane },
      { name: suspectQueue(service), kind: 'commands', lane: LANES[0], prefetch: 1, alone: true },
    ],
    queries: () => [
      { name: callQueryQueue(service), kind: 'queries', lane: 'calls', prefetch: QUERY_PREFETCH },
      ...LANE_NUMBERS.map((lane) => ({
        name: queryQueue(service, lane),
        kind: 'queries' as const,
        lane: LANES[lane],
        prefetch: LANE_PREFETCH,
      })),
    ],
    events: () =>
      SUBSCRIPTIONS[service].length > 0
        ? [{ name: eventQueue(service), kind: 'events', lane: 'events.own', prefetch: EVENT_PREFETCH }]
        : [],
  };
  return kinds.flatMap((kind) => ofKind[kind]());
}
