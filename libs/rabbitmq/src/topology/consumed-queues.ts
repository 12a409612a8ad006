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
  standbyQueryQueue,
  suspectQueue,
  type ExchangeName,
} from './topology';

export type QueueKind = 'commands' | 'queries' | 'events';

/** A queue that a service consumes. */
export interface ConsumedQueue {
  readonly name: string;
  readonly kind: QueueKind;
  /** The exchange of its messages, which is their share in the fair schedule. Retried messages carry their first exchange in a header. */
  readonly exchange: ExchangeName;
  /** Most messages in flight, waiting ones included. */
  readonly prefetch: number;
  /** Whether a message is handled with no other command in the process. */
  readonly alone?: boolean;
  /** Whether the queue is on one broker node. While that node is away, the process is ready nevertheless: it cannot change that. */
  readonly onOneNode?: boolean;
  /** Whether it is consumed, and its messages are answered, at another node than those of the other queues. */
  readonly apart?: boolean;
}

/**
 * Messages in flight of the calls, in each service: the turns bound what is at work, and know only what the process has. Each may have several
 * commands: with 32 of them a process holds at most 1024.
 */
export const CALLS_PREFETCH = 32;
/** Deliveries in flight of one lane. It limits how many wait in a slow process while another process is idle. */
const LANE_PREFETCH = 64;
/** The same for what a lane sends besides, in a second queue or a second time: the broker counts messages, and each may be a body of 1 MiB in memory. */
const LEAST_PREFETCH = 16;
/** Large, so that queries of quiet tenants are prefetched too when a busy tenant has a backlog. */
const QUERY_PREFETCH = 256;
/** More than the others of a key, so that keys take turns. The body of one may have 3 MiB and more. */
const EVENT_PREFETCH = 24;

/** @param commands most commands at work in a process, and so most deliveries of a lane that it takes */
export function consumedQueues(service: ServiceName, kinds: readonly QueueKind[], commands: number): ConsumedQueue[] {
  const inLane = Math.min(LANE_PREFETCH, commands);
  const besides = Math.min(LEAST_PREFETCH, commands);
  const ofKind: Record<QueueKind, () => ConsumedQueue[]> = {
    commands: () => [
      { name: callQueue(service), kind: 'commands', exchange: 'calls', prefetch: CALLS_PREFETCH },
      ...LANE_NUMBERS.map((lane) => ({
        name: commandQueue(service, lane),
        kind: 'commands' as const,
        exchange: LANES[lane],
        prefetch: inLane,
      })),
      { name: earlierCommandQueue(service), kind: 'commands', exchange: LANES[0], prefetch: besides },
      { name: againQueue(service), kind: 'commands', exchange: LANES[0], prefetch: besides },
      { name: suspectQueue(service), kind: 'commands', exchange: LANES[0], prefetch: 1, alone: true },
    ],
    queries: () => [
      { name: callQueryQueue(service), kind: 'queries', exchange: 'calls', prefetch: QUERY_PREFETCH, onOneNode: true },
      { name: standbyQueryQueue(service), kind: 'queries', exchange: 'calls', prefetch: QUERY_PREFETCH, apart: true },
      ...LANE_NUMBERS.map((lane) => ({
        name: queryQueue(service, lane),
        kind: 'queries' as const,
        exchange: LANES[lane],
        prefetch: LEAST_PREFETCH,
        onOneNode: true,
      })),
    ],
    events: () =>
      SUBSCRIPTIONS[service].length > 0
        ? [{ name: eventQueue(service), kind: 'events', exchange: 'events.own', prefetch: EVENT_PREFETCH }]
        : [],
  };
  return kinds.flatMap((kind) => ofKind[kind]());
}
