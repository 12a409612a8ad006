// Mutants of the protection of neighbours behind the gateway.
const SERVER = 'libs/rabbitmq/src/server';
const SCHEDULE = 'libs/rabbitmq/src/schedule';
const TURNS = `${SERVER}/turns.ts`;
const QUOTA = 'libs/rabbitmq/src/settle/letter-quota.ts';
const REFUSALS = 'libs/rabbitmq/src/events/event-refusals.ts';
const DELIVERY = 'libs/rabbitmq/src/delivery';
const ENVELOPE = `${DELIVERY}/envelope.ts`;
const QUESTIONS = 'apps/notifications/src/users-service/questions.ts';
const LETTER_TOOL = 'libs/rabbitmq-admin/src/dead-letters';
const LANES = 'libs/rabbitmq/test/lanes.int-spec.ts';
const OWN_EVENTS = 'libs/rabbitmq/test/own-events.int-spec.ts';
const LANE_TURNS = `${SERVER}/lane-turns.spec.ts`;
const LETTERS = [LANES, 'keep a limited number of refused commands'];
const LISTENERS = 'libs/rabbitmq/src/events/event.publisher.int-spec.ts';

/** @type {import('./mutants.mjs').Mutant[]} */
export const NEIGHBOUR_MUTANTS = [
  {
    name: 'deletions of unknown cost all at once',
    edits: [[TURNS, 'this.expected.mayTry(name) ? LIGHT : this.budget / 2', 'LIGHT']],
    test: [`${SERVER}/turns.spec.ts`, 'finds out by the first deletion of a tenant'],
  },
  {
    name: 'many users in few bytes that count as light',
    edits: [['libs/contracts/src/users.add.ts', '  lightBytes: 512,\n', '']],
    test: [`${SERVER}/turns.spec.ts`, 'lets additions of users with'],
  },
  {
    name: 'keys without turns at the consumer',
    edits: [
      [
        TURNS,
        'return OF_PROVED_KEYS.has(context.pattern) ? `key ${context.apiKey}`',
        "return OF_PROVED_KEYS.has(context.pattern) ? 'key'",
      ],
    ],
    test: [`${SERVER}/turns.spec.ts`, 'lets small commands pay for the rows'],
  },
  {
    name: 'light commands of one key that fill the queue in front of others',
    edits: [['apps/gateway/src/admission/call-turns.ts', 'this.calls?.isBeside(apiKey, performance.now())', 'false as boolean']],
    test: ['apps/gateway/src/admission/call-turns.spec.ts', 'are a bounded number of a key beside others'],
  },
  {
    name: 'a consumer that takes no more calls than it has places',
    edits: [
      [
        'libs/rabbitmq/src/topology/consumed-queues.ts',
        'prefetch: CALLS_PREFETCH',
        'prefetch: Math.min(CALLS_PREFETCH, commands)',
      ],
    ],
    test: ['libs/rabbitmq/test/calls-at-work.int-spec.ts', 'handles a light command of another key'],
  },
  {
    name: 'any number of questions to users of one key',
    edits: [
      [QUESTIONS, 'this.of(apiKey) < MOST_QUESTIONS.ofKey && this.allAtWork < MOST_QUESTIONS.ofAll', 'this.allAtWork >= 0'],
    ],
    test: ['test/e2e/faults.e2e-spec.ts', 'do not wait behind them'],
  },
  {
    name: 'questions that wait for a silent service',
    edits: [[QUESTIONS, 'if (this.isSilent) throw noTurn();', '']],
    test: ['apps/notifications/src/users-service/questions.spec.ts', 'fail at once after one that has failed'],
  },
  {
    name: 'work that pays the same whatever it costs',
    edits: [[`${SCHEDULE}/fair-schedule.ts`, 'const owed = known - started.cost;', 'const owed = 0;']],
    test: [`${SCHEDULE}/fair-schedule.spec.ts`, 'charges the actual cost'],
  },
  {
    name: 'heavy work without a bound',
    edits: [
      [
        `${SCHEDULE}/heavy-budget.ts`,
        "if (cost <= LIGHT) return 'none';\n    const",
        "if (cost < Infinity) return 'none';\n    const",
      ],
    ],
    test: [`${SERVER}/turns.spec.ts`, 'takes the size of a body'],
  },
  {
    name: 'heavy work that does not rest',
    edits: [[TURNS, '    rests: true,\n', '']],
    test: [`${SERVER}/query-turns.spec.ts`, 'does not halve'],
  },
  {
    name: 'events that rest beside calls',
    edits: [[`${SERVER}/rabbit.server.ts`, 'this.turns[delivery.kind]', 'this.turns.commands']],
    test: [OWN_EVENTS, 'have all of their budget beside light calls'],
  },
  {
    name: 'a window of few events',
    edits: [['libs/rabbitmq/src/topology/consumed-queues.ts', 'EVENT_PREFETCH = 24', 'EVENT_PREFETCH = 16']],
    test: [OWN_EVENTS, 'do not keep those of others behind them'],
  },
  {
    name: 'accounts of a lane without turns',
    edits: [[TURNS, "return context.userId ?? '';", "return '';"]],
    test: [LANE_TURNS, 'let their accounts take turns'],
  },
  {
    name: 'no turns between lanes',
    edits: [[TURNS, 'share: delivery.exchange,', "share: delivery.exchange === 'calls' ? 'calls' : 'lanes',"]],
    test: [LANE_TURNS, 'take turns, however many accounts'],
  },
  {
    name: 'lanes that have as many turns as calls',
    edits: [[TURNS, 'const WEIGHTS = { calls: 12 };', 'const WEIGHTS = { calls: 1 };']],
    test: [LANE_TURNS, 'leave three quarters of the turns'],
  },
  {
    name: 'lanes that leave no room for calls',
    edits: [[TURNS, 'others: LANES,', 'others: [],']],
    test: [LANE_TURNS, 'leave room for calls'],
  },
  {
    name: "a lane bound to another's queue",
    edits: [
      [
        'libs/rabbitmq/src/topology/topology.ts',
        'commandQueue(message.service, lane) : queryQueue',
        'commandQueue(message.service, lane === 2 ? 1 : lane) : queryQueue',
      ],
    ],
    test: [LANES, 'do not wait for each other'],
  },
  {
    name: 'letters without a bound for an account',
    edits: [[QUOTA, 'await this.letters.consume(publisher);\n      if (bytes > 0)', 'if (bytes < 0)']],
    test: LETTERS,
  },
  {
    name: 'letters without a bound on their rate',
    edits: [['libs/rabbitmq/src/settle/letter-turns.ts', 'others: LANES,', 'others: [],']],
    test: [LANES, 'write the letters of refused commands at a bounded rate'],
  },
  {
    name: 'a bound of letters for all together',
    edits: [[QUOTA, 'const publisher = publisherOf(delivery);', "const publisher = publisherOf(delivery) && 'all';"]],
    test: LETTERS,
  },
  {
    name: 'letters of an account counted for its lane',
    edits: [[QUOTA, 'context.userId ?? `without user_id, by exchange ${exchange}`', 'context && exchange']],
    test: LETTERS,
  },
  {
    name: 'a refused queue that refuses',
    edits: [['libs/rabbitmq/src/topology/topology.ts', 'dropping(100_000, 256)', 'refusing(100_000, 256)']],
    test: ['libs/rabbitmq/src/topology/topology.spec.ts', 'drops only dead letters that their publisher caused'],
  },
  {
    name: 'held deliveries without a bound',
    edits: [['libs/rabbitmq/src/settle/held-deliveries.ts', ".get(queue)?.pause('letters')", ".get(queue)?.resume('letters')"]],
    test: ['libs/rabbitmq/test/held.int-spec.ts', 'end the consumption of their queue'],
  },
  {
    name: 'a refused event that is never given up',
    edits: [[REFUSALS, 'const patient = now - Math.min(first, state.since) < this.patienceMs;', 'const patient = true;']],
    test: [LISTENERS, 'gives up on a listener'],
  },
  {
    name: 'a refused event that is given up at once',
    edits: [[REFUSALS, 'const patient = now - Math.min(first, state.since) < this.patienceMs;', 'const patient = false;']],
    test: [LISTENERS, 'even while a listener refuses'],
  },
  {
    name: 'a refused event that holds up the others',
    edits: [
      [
        'libs/postgres/src/outbox/stored-events.ts',
        'if (again && again.size > 0) await this.keep(client, { events, again, dropped });',
        "if (again && again.size > 0) throw new Error('refused');",
      ],
    ],
    test: ['libs/postgres/src/outbox/outbox.int-spec.ts', 'does not delay the others'],
  },
  {
    name: 'user_id ignored',
    edits: [[ENVELOPE, 'vouched ? properties.userId : undefined', 'vouched ? properties.appId : undefined']],
    test: [`${DELIVERY}/envelope.spec.ts`, 'trusts user_id only of a message'],
  },
  {
    name: 'a forged x-origin-user believed',
    edits: [
      [ENVELOPE, 'retried ? headers[name] : undefined;', 'retried || name === HEADER.originUser ? headers[name] : undefined;'],
    ],
    test: [`${DELIVERY}/envelope.spec.ts`, 'trusts our own headers only'],
  },
  {
    name: 'user_id believed after a dead-lettering',
    edits: [[ENVELOPE, "!retried && !('x-death' in headers)", '!retried']],
    test: [`${DELIVERY}/envelope.spec.ts`, 'trusts user_id only of a message'],
  },
  {
    name: 'letters of anybody believed',
    edits: [[`${LETTER_TOOL}/testimony.ts`, 'services.has(userId)', 'services.size > 0']],
    test: [`${LETTER_TOOL}/forged.int-spec.ts`, 'expired in the queue of versions without lanes'],
  },
  {
    name: 'queues of a listener without a bound',
    edits: [['libs/rabbitmq-admin/src/accounts/limits.ts', "{ 'max-length': length,", "{ 'max-length': 2 * length,"]],
    test: ['libs/rabbitmq-admin/src/accounts/limits.int-spec.ts', 'limit unlimited queues'],
  },
  {
    name: 'a pause of the database of 3 s before the first 503',
    edits: [[`${SERVER}/database-pause.ts`, 'const RESTART_MS = 1000;', 'const RESTART_MS = 3000;']],
    test: [`${SERVER}/database-pause.spec.ts`, 'when the database is away for longer'],
  },
  {
    name: 'calls that wait for a turn while the database is away',
    edits: [
      [
        `${SERVER}/rabbit.server.ts`,
        "if (state === 'long') this.turns.commands.open();",
        "if (state === 'here') this.turns.commands.close();",
      ],
    ],
    test: ['libs/rabbitmq/test/database-away.int-spec.ts', 'a new command with a caller is refused'],
  },
  {
    name: 'bodies that are parsed before their turn',
    edits: [
      ['apps/gateway/src/admission/content.ts', '    return body;', '    return JSON.parse(String(body)) as unknown;'],
      ['apps/gateway/src/controllers/operations.controller.ts', 'Buffer.isBuffer(body) ? parseJson(body) : undefined', 'body'],
    ],
    test: ['apps/gateway/test/calls-in-flight.spec.ts', 'keep no parsed body'],
  },
  {
    name: 'any number of values in a body',
    edits: [['libs/contracts/src/json.ts', 'bytes.length > MAX_VALUES &&', 'bytes.length < 0 &&']],
    test: ['libs/contracts/src/json.spec.ts', 'refuses too many'],
  },
  {
    name: 'all problems of a list',
    edits: [['libs/contracts/src/validate.ts', 'chosen.length < MAX_DETAILS', 'chosen.length < Infinity']],
    test: ['libs/contracts/src/validate.spec.ts', 'is judged up to its 20th problem'],
  },
];
