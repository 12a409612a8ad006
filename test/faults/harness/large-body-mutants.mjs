// Mutants of what keeps large bodies of lanes away from calls.
const SERVER = 'libs/rabbitmq/src/server';
const DELIVERY = 'libs/rabbitmq/src/delivery';

/** @type {import('./mutants.mjs').Mutant[]} */
export const LARGE_BODY_MUTANTS = [
  {
    name: 'large bodies of a lane at full speed',
    edits: [[`${DELIVERY}/large-bodies.ts`, 'this.consumer.pause();', '']],
    test: [`${DELIVERY}/large-bodies.spec.ts`, 'takes 16 MiB a second'],
  },
  {
    name: 'as many large bodies of a lane at a time as small ones',
    edits: [
      [`${DELIVERY}/queue-consumer.ts`, 'this.largeBodies?.areMany ? Math.min(prefetch, prefetchOfLarge) : prefetch', 'prefetch'],
    ],
    test: ['libs/rabbitmq/test/large-bodies.int-spec.ts', 'slowly and few at a time'],
  },
  {
    name: 'lanes on the connection of the calls',
    edits: [[`${SERVER}/server-connections.ts`, 'isOfLane(queue) ? this.lanes : this.consuming', 'this.consuming']],
    test: ['libs/rabbitmq/test/lane-connection.int-spec.ts', 'does not delay calls'],
  },
];
