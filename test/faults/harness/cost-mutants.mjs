// Mutants of what work costs a tenant at the consumers.
const SERVER = 'libs/rabbitmq/src/server';
const SCHEDULE = 'libs/rabbitmq/src/schedule';

/** @type {import('./mutants.mjs').Mutant[]} */
export const COST_MUTANTS = [
  {
    name: 'one key in all places',
    edits: [[`${SCHEDULE}/fair-schedule.ts`, 'running >= places / 2', 'running >= places']],
    test: [`${SCHEDULE}/fair-schedule-rests.spec.ts`, 'gives one flow half of the places'],
  },
  {
    name: 'costs that many empty answers talk down',
    edits: [[`${SCHEDULE}/expected-costs.ts`, 'Math.max(costs.recent, largestOf(costs, now))', 'costs.recent']],
    test: [`${SERVER}/query-turns.spec.ts`, 'cannot be talked down'],
  },
  {
    name: 'reads that are heavy because of one question to users',
    edits: [[`${SERVER}/turns.ts`, 'costOf(rows - oneTimeRows)', 'costOf(rows)']],
    test: [`${SERVER}/query-turns-rows.spec.ts`, 'pass the heavy pages of others'],
  },
  {
    name: 'light work that takes the place of what rests',
    edits: [[`${SCHEDULE}/fair-schedule.ts`, 'const keepsPlace = restMs > 0', 'const keepsPlace = restMs < 0']],
    test: [`${SERVER}/query-turns-rows.spec.ts`, 'rest in half of the places'],
  },
  {
    name: 'light costs that are known for ever',
    edits: [[`${SCHEDULE}/expected-costs.ts`, 'recent <= LIGHT && now - at', 'recent < 0 && now - at']],
    test: [`${SERVER}/query-turns.spec.ts`, 'finds out anew'],
  },
  {
    name: 'first queries of many tenants in all places',
    edits: [[`${SCHEDULE}/expected-costs.ts`, 'this.tried.size < MOST_TRIED ||', 'this.tried.size < Infinity ||']],
    test: [`${SERVER}/query-turns.spec.ts`, 'leaves places to light queries'],
  },
  {
    name: 'small heavy work that waits for large work',
    edits: [[`${SCHEDULE}/heavy-budget.ts`, 'return this.isSmall(cost) &&', 'return !this.isSmall(cost) &&']],
    test: [`${SCHEDULE}/heavy-budget.spec.ts`, 'beside the large work'],
  },
  {
    name: 'small heavy work that keeps large work out',
    edits: [[`${SCHEDULE}/heavy-budget.ts`, "PART_OF_SMALL * this.half ? 'small'", "PART_OF_SMALL * this.half ? 'shared'"]],
    test: [`${SCHEDULE}/heavy-budget.spec.ts`, 'takes no shared room'],
  },
  {
    name: 'pages that do not pay for users who have left',
    edits: [['apps/users/src/queries/get-users.handler.ts', 'context.rows = rows;', 'context.rows = rows && 0;']],
    test: ['apps/users/src/queries/stated-rows.int-spec.ts', 'states the members'],
  },
];
