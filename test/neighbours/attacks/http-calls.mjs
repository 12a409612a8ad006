// Tenants that make as many and as expensive calls as they may.
import { attackBy } from './broker-client.mjs';
import { Calls, HEAVY, bodyOf, both, notification, prepareHeavyPages, unique } from './calls.mjs';
import { store } from './lifecycle.mjs';
import { commandOf } from './publisher.mjs';

/** @param {number} inFlight @returns {import('./all.mjs').Attack} */
const heavyPages = (inFlight) => ({
  name: `heavy pages, ${inFlight} in a loop`,
  why: 'A page of 4 MiB costs a thousand times more than an empty page, and rate limits count calls.',
  prepare: prepareHeavyPages,
  start: (target) =>
    new Calls(target).closedLoop(inFlight, () => ['notifications/get', target.tenant, bodyOf({ ...HEAVY, pageSize: 1000 })]),
});

const RECIPIENTS = 1000;
/** @param {string} prefix @param {object} [more] */
const recipients = (prefix, more = {}) =>
  Array.from({ length: RECIPIENTS }, (_, number) => ({ userId: `${prefix} ${number}`, ...more }));

/** Just below the size from which the gateway takes a body for a large one. */
const MEDIUM_BYTES = 15 * 1024;
/** All places that one key alone gets of a kind. */
const PLACES_OF_KEY = 480;

/** @param {(users: object[]) => string} make @returns a body with as many users as fit below {@link MEDIUM_BYTES} */
function mediumBody(make) {
  const users = recipients('user');
  while (Buffer.byteLength(make(users)) > MEDIUM_BYTES) users.pop();
  return make(users);
}

/** One call in this number has a thousand users. */
const EVERY = 10;

/** @type {import('./all.mjs').Attack[]} */
export const HTTP_CALLS = [
  heavyPages(8),
  heavyPages(64),
  heavyPages(200),
  {
    name: 'bodies of 1 MiB',
    why: 'The largest accepted bodies, half of them valid: they are read, parsed and validated.',
    start(target) {
      const name = 'n'.repeat(320);
      const valid = bodyOf(
        notification({ notifyUsers: recipients('u'.repeat(240), { name, email: `${'m'.repeat(300)}@example.com` }) }),
      );
      const broken = valid.slice(0, -1) + ' '.repeat(1024 * 1024 - valid.length);
      let number = 0;
      return new Calls(target).closedLoop(16, () => ['notifications/add', target.tenant, number++ % 2 ? valid : broken]);
    },
  },
  {
    name: '1,000 recipients at full speed',
    why: 'One row for each recipient: a statement takes fifty times longer than one of another tenant.',
    start(target) {
      const body = bodyOf(notification({ notifyUsers: recipients('user') }));
      return new Calls(target).closedLoop(32, () => ['notifications/add', target.tenant, body]);
    },
  },
  {
    name: 'adds of 15 KiB at full speed',
    seconds: 10,
    why: 'Hundreds of recipients in a body that is not large for the gateway: they could fill the queue in front of the small calls of others.',
    start(target) {
      const body = mediumBody((notifyUsers) => bodyOf(notification({ notifyUsers })));
      return new Calls(target).closedLoop(PLACES_OF_KEY, () => ['notifications/add', target.tenant, body]);
    },
  },
  {
    name: 'adds of 15 KiB and as many calls with 100 users',
    seconds: 10,
    why: 'The same in both services: questions and calls of others need the users service, too.',
    start(target) {
      const add = mediumBody((notifyUsers) => bodyOf(notification({ notifyUsers })));
      const users = bodyOf({ organizationId: 'the attacker', users: recipients('user', { name: 'n'.repeat(64) }).slice(0, 100) });
      return new Calls(target)
        .closedLoop(PLACES_OF_KEY / 2, () => ['notifications/add', target.tenant, add])
        .closedLoop(PLACES_OF_KEY / 2, () => ['users/add', target.tenant, users]);
    },
  },
  {
    name: 'lists of a thousand wrong entries',
    seconds: 10,
    why: 'A body of 3 KB that is refused: each entry has problems that somebody has to find.',
    start(target) {
      const body = bodyOf({ organizationId: 'the attacker', users: Array.from({ length: RECIPIENTS }, () => ({})) });
      return new Calls(target).openLoop(300, () => ['users/add', target.tenant, body]);
    },
  },
  {
    name: 'bodies of as many values as possible',
    seconds: 10,
    why: 'Parsed JSON takes up to thirty times the bytes of its text: small bodies on all places of a key, and a few of the largest.',
    start(target) {
      const valid = '{"data":{"organizationId":"the attacker","users":[{"userId":"user"}]},"more":';
      /** @param {number} objects */
      const body = (objects) => `${valid}[${Array.from({ length: objects }, () => '{}').join()}]}`;
      const [small, large] = [body(5000), body(59_000)];
      return new Calls(target)
        .closedLoop(PLACES_OF_KEY - 16, () => ['users/add', target.tenant, small])
        .closedLoop(16, () => ['users/add', target.tenant, large]);
    },
  },
  {
    name: 'one user, added at full speed',
    seconds: 10,
    why: 'Each of these light commands waits for the row that the one before has changed. They could fill the queue in front of all others of users.',
    start(target) {
      const body = () => bodyOf({ organizationId: 'the attacker', users: [{ userId: 'the only one', name: unique() }] });
      return new Calls(target).closedLoop(PLACES_OF_KEY, () => ['users/add', target.tenant, body()]);
    },
  },
  {
    name: 'bad credentials, 2,000 a second',
    why: 'Each costs a question to the users service, and the answer is of no further use. It sends 2,000 a second while fewer than 1,000 are unanswered.',
    start(target) {
      const headers = () => ({
        'x-svc-api-key': Math.random() < 0.5 ? target.tenant['x-svc-api-key'] : unique(),
        'x-svc-auth-token': unique(),
      });
      return new Calls(target).openLoop(2000, () => ['notifications/get', headers(), '{}']);
    },
  },
  {
    name: 'invented organizations',
    why: 'Each is stored for the first time, and takes one of 50,000 places for known documents in a writer: 300 calls and up to 2,000 direct commands a second.',
    async start(target) {
      const invented = () => ({ organizationId: unique(), documentId: unique(), notifyUsers: [{ userId: unique() }] });
      const published = await attackBy(target.publisher, (client) =>
        client.flood(Infinity, () => commandOf(target, invented()), 2000),
      );
      const calls = new Calls(target)
        .openLoop(150, () => ['notifications/add', target.tenant, bodyOf(notification(invented()))])
        .openLoop(150, () => ['notifications/get', target.tenant, bodyOf({ organizationId: unique(), userId: unique() })]);
      return both(calls, published);
    },
  },
  {
    name: 'a thousand keys at once',
    why: 'The share of a key is small when there are many keys: a thousand calls of a thousand keys, every two seconds.',
    start(target) {
      const calls = new Calls(target);
      const body = bodyOf(notification());
      const all = () => target.keys.forEach((headers) => void calls.call('notifications/add', headers, body));
      all();
      const timer = setInterval(all, 2000);
      return {
        stop() {
          clearInterval(timer);
          return calls.stop();
        },
      };
    },
  },
  {
    name: 'reads of ever new users of one organization',
    seconds: 10,
    why: 'The first read for a user asks the users service for all memberships, because the organization has a notification to all.',
    prepare: (target) => store(target, [['notifications/add', notification({ notificationId: 'to all', notifyAll: true })]]),
    start(target) {
      const body = () => bodyOf({ organizationId: 'the attacker', userId: unique() });
      return new Calls(target).openLoop(400, () => ['notifications/get', target.tenant, body()]);
    },
  },
  {
    name: 'one notification id from everywhere',
    seconds: 10,
    why: 'Statements of several tenants share a commit, and rows that meet wait for each other.',
    start(target) {
      const body = () =>
        bodyOf(notification({ notificationId: `same ${Math.floor(Math.random() * 5)}`, notifyUsers: recipients('user') }));
      return new Calls(target).closedLoop(32, () => ['notifications/add', target.tenant, body()]);
    },
  },
  {
    name: 'a thousand users in every call, in any order',
    seconds: 10,
    why: 'Calls that lock rows in different orders wait for each other, and the users service also checks credentials.',
    start(target) {
      const users = () => recipients('user', { name: unique() }).sort(() => Math.random() - 0.5);
      const body = () => bodyOf({ organizationId: 'the attacker', documentId: 'document', users: users() });
      return new Calls(target).closedLoop(16, () => ['users/add', target.tenant, body()]);
    },
  },
  {
    name: 'notifications to all, read by a thousand users',
    seconds: 10,
    why: 'A notification to all is one row, and every page of every user must find it.',
    start(target) {
      const calls = new Calls(target);
      let number = 0;
      /** @returns {import('./calls.mjs').Call} */
      const add = () => ['notifications/add', target.tenant, bodyOf(notification({ notifyAll: true }))];
      const get = () => bodyOf({ organizationId: 'the attacker', userId: `user ${Math.floor(Math.random() * RECIPIENTS)}` });
      return calls.closedLoop(32, () => (number++ % EVERY === 0 ? add() : ['notifications/get', target.tenant, get()]));
    },
  },
];
