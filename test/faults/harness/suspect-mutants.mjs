// Mutants of suspects: commands that may have crashed their consumer.
const SOLITUDE = 'libs/rabbitmq/src/server/solitude.ts';
const SERVER = 'libs/rabbitmq/src/server/rabbit.server.ts';
const OUTAGE = 'libs/rabbitmq/test/long-outage.int-spec.ts';

/** @type {import('./mutants.mjs').Mutant[]} */
export const SUSPECT_MUTANTS = [
  {
    name: 'consumers of a lane that take turns',
    edits: [['libs/rabbitmq/src/server/server-connections.ts', 'Math.floor(Math.random() * MOST_PRIORITY)', '0']],
    test: ['libs/rabbitmq/test/lanes.int-spec.ts', 'have one process for the few commands of a moment'],
  },
  {
    name: 'suspects handled while the process that ended is away',
    edits: [
      ['libs/rabbitmq/src/delivery/delivery.ts', '(redelivered && !awaited)', '(redelivered && !awaited && !this.isSuspect)'],
    ],
    test: ['libs/rabbitmq/test/crashed-suspects.int-spec.ts', 'wait before they become suspects'],
  },
  {
    name: 'kills that count while a suspect waits',
    edits: [[SERVER, 'if (delivery.queue.alone) {', 'if (delivery.queue.prefetch === 0) {']],
    test: ['libs/rabbitmq/test/crashed-suspects.int-spec.ts', 'are not given up for processes that end'],
  },
  {
    name: 'the next suspect handled right after a crash',
    edits: [[SOLITUDE, "void consumer?.pause('suspect');", '']],
    test: ['libs/rabbitmq/test/crashed-suspects.int-spec.ts', 'leave time after a crash'],
  },
  {
    name: 'a suspect whose crashes are forgotten',
    edits: [['libs/rabbitmq/src/settle/republication.ts', 'crashes || undefined', 'undefined']],
    test: ['libs/rabbitmq/test/crashed-suspects.int-spec.ts', 'also when they waited after each of them'],
  },
  {
    name: 'a suspect that stops all others while the database is away',
    edits: [[SOLITUDE, 'this.waiting.abort();', '']],
    test: [OUTAGE, 'others are answered when it begins while a suspect waits'],
  },
  {
    name: 'a command that begins beside a suspect',
    edits: [[SOLITUDE, 'this.alone.size > 0 &&', 'this.alone.size > Infinity &&']],
    test: ['libs/rabbitmq/test/suspects.int-spec.ts', 'are handled alone also when a command has waited'],
  },
  {
    name: 'deliveries of a lost channel that wait for the database',
    edits: [['libs/rabbitmq/src/delivery/delivery.ts', "channel.once('close', forget);", '']],
    test: [OUTAGE, 'others are lost whose commands have begun'],
  },
  {
    name: 'deliveries of a lost channel that wait for their turn',
    edits: [['libs/rabbitmq/src/schedule/fair-schedule.ts', 'work.dropIfOver?.() ?? false', 'work.dropIfOver === undefined']],
    test: [OUTAGE, 'others are lost whose commands wait for their turn'],
  },
  {
    name: 'a suspect handled before the rest of its message is moved',
    edits: [[SOLITUDE, 'return tracked(this.moving, settled);', 'return settled;']],
    test: ['libs/rabbitmq/test/shared-messages.int-spec.ts', 'are all suspects of their own'],
  },
];
