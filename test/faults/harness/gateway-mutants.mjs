// Mutants of the protection of neighbours at the gateway.
const ADMISSION = 'apps/gateway/src/admission';
const SERVER = 'apps/gateway/src/server';

/** @type {import('./mutants.mjs').Mutant[]} */
export const GATEWAY_MUTANTS = [
  {
    name: 'a key that has all places',
    edits: [[`${ADMISSION}/shares.ts`, "if (own > 0 && own >= OF_WHAT_IS_FREE * free) return 'share';", '']],
    test: [`${ADMISSION}/shares.spec.ts`, 'one key four fifths of that'],
  },
  {
    name: 'a kind of call that has all places',
    edits: [
      [
        `${ADMISSION}/places.ts`,
        'Math.ceil((OF_WHAT_IS_FREE * (this.max - this.taken) - this.kinds[kind].all) / (1 + OF_WHAT_IS_FREE))',
        'this.max - this.taken',
      ],
    ],
    test: [`${ADMISSION}/shares.spec.ts`, 'has places for reads when all writes hang'],
  },
  {
    name: 'large bodies of all keys in one share',
    edits: [[`${ADMISSION}/hold.ts`, 'this.sharesOf(bytes).take(this.apiKey, bytes)', "this.sharesOf(bytes).take('', bytes)"]],
    test: ['apps/gateway/test/calls-in-flight.spec.ts', 'leave room for small bodies and other keys'],
  },
  {
    name: 'unread answers without a share',
    edits: [
      [
        `${ADMISSION}/answers.ts`,
        'return this.shares.take(apiKey, bytes - expected)',
        'return void this.shares.add(apiKey, bytes - expected)',
      ],
      [
        `${ADMISSION}/answers.ts`,
        'return (bytes > reserved ? this.shares.take(apiKey, bytes - reserved) : undefined) ?? bytes;',
        'this.shares.add(apiKey, bytes - reserved);\n    return bytes;',
      ],
    ],
    test: ['apps/gateway/test/unread.spec.ts', 'are limited for each key'],
  },
  {
    name: 'new keys that begin as many calls as they like',
    edits: [[`${ADMISSION}/call-turns.ts`, '(isSettled || this.freshAtWork < this.mostFresh())', 'true']],
    test: [`${ADMISSION}/call-turns.spec.ts`, 'are few beside a call of a settled key'],
  },
  {
    name: 'heavy commands without turns at the gateway',
    edits: [[`${ADMISSION}/call-turns.ts`, 'MOST_ANSWER_BYTES : MOST_HEAVY_BYTES', 'MOST_ANSWER_BYTES : Infinity']],
    test: [`${ADMISSION}/call-turns-heavy.spec.ts`, 'of heavy commands are as many as a process'],
  },
  {
    name: 'large pages without turns at the gateway',
    edits: [[`${ADMISSION}/call-turns.ts`, '? MOST_ANSWER_BYTES : MOST_HEAVY_BYTES', '? Infinity : MOST_HEAVY_BYTES']],
    test: [`${ADMISSION}/call-turns-heavy.spec.ts`, 'of heavy queries are few, three quarters of them of a key'],
  },
  {
    name: 'any number of pages of unknown size at work',
    edits: [[`${ADMISSION}/call-turns.ts`, '{ most: MOST_UNKNOWN.ofAll, mostOfKey: MOST_UNKNOWN.ofKey }', '{ most: Infinity }']],
    test: [`${ADMISSION}/call-turns-heavy.spec.ts`, 'of heavy queries are few for a key whose answers may have any size'],
  },
  {
    name: 'a traced error for each aborted request',
    edits: [['apps/gateway/src/server/connections.ts', '(Error.stackTraceLimit = 0)', 'undefined']],
    test: ['apps/gateway/src/server/connections.spec.ts', 'aborts requests without the stacks of their errors'],
  },
  {
    name: 'all that has arrived parsed at once',
    edits: [['apps/gateway/src/server/unproved-connections.ts', '++this.parsed === MOST_PARSED', '++this.parsed === Infinity']],
    test: ['apps/gateway/src/server/unproved-connections.spec.ts', 'is parsed in several iterations: requests'],
  },
  {
    name: 'small pieces of bodies all parsed at once',
    edits: [['apps/gateway/src/server/small-pieces.ts', 'reader.unpaid % PIECES_OF_REQUEST === 0', 'reader.unpaid < 0']],
    test: ['apps/gateway/src/server/unproved-connections.spec.ts', 'is parsed in several iterations: small pieces'],
  },
  {
    name: 'new connections behind all that came before',
    edits: [['apps/gateway/src/server/unproved-connections.ts', 'this.queue.takeLast()', 'this.queue.takeFirst(() => true)']],
    test: ['apps/gateway/src/server/unproved-connections.spec.ts', 'reads the first and the latest'],
  },
  {
    name: 'large bodies without turns beside small calls',
    edits: [[`${ADMISSION}/large-bodies.ts`, 'if (!this.light.isBeside(apiKey, now)) return true;', 'if (now > 0) return true;']],
    test: [`${ADMISSION}/large-bodies.spec.ts`, 'has one body of a key at work beside small calls'],
  },
  {
    name: 'any number of new credentials checked at a time',
    edits: [[`${ADMISSION}/semaphore.ts`, 'if (this.running < this.limits.atATime)', 'if (true as boolean)']],
    test: [`${ADMISSION}/flood.spec.ts`, 'asks few questions at a time'],
  },
  {
    name: 'known credentials that wait behind new ones',
    edits: [
      [`${ADMISSION}/authenticator.ts`, 'const question = isWrong\n', 'const question = isWrong || this.semaphore.isFull\n'],
    ],
    test: [`${ADMISSION}/flood.spec.ts`, 'renews known credentials without waiting'],
  },
  {
    name: 'answers that nobody need read',
    edits: [
      [
        'apps/gateway/src/server/progress.ts',
        'return now - this.movedAt < limits.unreadTimeoutMs && taken - this.takenBefore >= leastTaken;',
        'return leastTaken < Infinity;',
      ],
    ],
    test: ['apps/gateway/test/unread.spec.ts', 'end a connection without credentials'],
  },
  {
    name: 'answers that are read as slowly as a client likes',
    edits: [['apps/gateway/src/server/progress.ts', '&& taken - this.takenBefore >= leastTaken', '&& leastTaken < Infinity']],
    test: ['apps/gateway/src/server/progress.spec.ts', 'must reach the minimum rate'],
  },
  {
    name: 'a connection that owes any number of answers',
    edits: [
      ['apps/gateway/src/server/connections.ts', 'if (connection.owed.length <= this.limits.maxOwed)', 'if (true as boolean)'],
    ],
    test: ['apps/gateway/test/unread.spec.ts', 'are limited for each connection'],
  },
  {
    name: 'garbage behind a call that is read on',
    edits: [[`${SERVER}/client-errors.ts`, 'neverReadOn(socket);', '']],
    test: ['apps/gateway/test/not-a-request.spec.ts', 'after a request are not read any further'],
  },
  {
    name: 'unread answers that nobody looks for after the close of the first socket',
    edits: [[`${SERVER}/connections.ts`, 'if (this.hasStopped && this.open.size === 0)', 'if (this.hasStopped)']],
    test: [`${SERVER}/connections.spec.ts`, 'closes what is not read after the close'],
  },
  {
    name: 'unread answers that begin late at the close',
    edits: [[`${SERVER}/connections.ts`, 'if (this.isClosing) this.closeSlow();', '']],
    test: [`${SERVER}/connections.spec.ts`, 'closes what is not read after the close'],
  },
  {
    name: 'turns of ended connections with small pieces',
    edits: [[`${SERVER}/small-pieces.ts`, 'this.queue.remove(reader.owner, reader);', '']],
    test: [`${SERVER}/small-pieces.spec.ts`, 'gives no turn to connections that end while they wait'],
  },
  {
    name: 'any number of unproved connections with small pieces',
    edits: [[`${SERVER}/small-pieces.ts`, '++this.unprovedWaiting > MOST_UNPROVED', '++this.unprovedWaiting > Infinity']],
    test: [`${SERVER}/small-pieces.spec.ts`, 'closes unproved connections above those that may wait'],
  },
  {
    name: 'a usual request closed because of larger ones',
    edits: [[`${SERVER}/connections.ts`, '>= this.searchedMean', '>= 0']],
    test: [`${SERVER}/connections.spec.ts`, 'closes none with a usual request'],
  },
  {
    name: 'waiting requests of any memory',
    edits: [[`${SERVER}/connections.ts`, 'if (this.bytes > this.limits.maxOwedBytes) this.closeLargest(socket);', '']],
    test: [`${SERVER}/connections.spec.ts`, 'closes those with most of it'],
  },
  {
    name: 'requests of any memory in one iteration',
    edits: [[`${SERVER}/request-memory.ts`, 'if (this.bytes <= this.most) return;', 'if (this.bytes <= Infinity) return;']],
    test: [`${SERVER}/connections.spec.ts`, 'reads the rest in later iterations'],
  },
  {
    name: 'waiting requests of closed connections',
    edits: [[`${ADMISSION}/refuse-unread.ts`, '      leave();\n      giveRoom();\n', '']],
    test: [`${ADMISSION}/refuse-unread.spec.ts`, 'lets no request of a closed connection wait'],
  },
  {
    name: 'new connections that close one another',
    edits: [[`${SERVER}/connections.ts`, 'this.unproved.size <= this.limits.fewUnproved', 'false as boolean']],
    test: ['apps/gateway/test/connections.spec.ts', 'do not close one another while they are few'],
  },
  {
    name: 'refusals for closed connections',
    edits: [[`${SERVER}/pace.ts`, 'return () => this.remove(work);', 'return () => undefined;']],
    test: [`${ADMISSION}/too-many-requests.spec.ts`, 'gives no time to connections that have closed'],
  },
];
