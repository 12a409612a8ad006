// Tenants whose calls become events of users, which wait in one queue for all tenants.
import { Calls, bodyOf, unique } from './calls.mjs';
import { MOST, ORGANIZATION, store, times } from './lifecycle.mjs';

/** Half of the places that one key alone gets of a kind. */
const AT_ONCE = 240;
const HUNDRED = 100;
const ID_CHARACTERS = 6;

/** Ids that are new in each run, and so short that a hundred of them are light for the users service, and their event is not. */
function newIds() {
  let number = parseInt(unique().slice(0, 7), 16);
  return () => (number++).toString(36).padStart(ID_CHARACTERS, '0').slice(-ID_CHARACTERS);
}

/** With details of the greatest length, which are in each event of them. */
const KNOWN = 4000;
/** @param {number} number */
const knownUser = (number) => ({ userId: number.toString(36).padStart(3, '0') });
const DETAILS = { name: 'n'.repeat(320), email: `${'m'.repeat(300)}@example.com` };

/** @type {import('./all.mjs').Attack[]} */
export const MEMBERS = [
  {
    name: 'a hundred new users in every call',
    seconds: 10,
    why: 'Each call is an event, which copies a hundred memberships, in the queue in which the removals of others wait.',
    start(target) {
      const id = newIds();
      const users = () => times(HUNDRED, () => ({ userId: id() }));
      return new Calls(target).closedLoop(AT_ONCE, () => [
        'users/add',
        target.tenant,
        bodyOf({ organizationId: ORGANIZATION, users: users() }),
      ]);
    },
  },
  {
    name: 'one new user in every call',
    seconds: 10,
    why: 'The most events that a tenant can cause: a statement and a commit for each of them, in the same queue.',
    start(target) {
      const id = newIds();
      return new Calls(target).closedLoop(AT_ONCE, () => [
        'users/add',
        target.tenant,
        bodyOf({ organizationId: ORGANIZATION, users: [{ userId: id() }] }),
      ]);
    },
  },
  {
    name: 'a hundred known users in a new document in every call',
    seconds: 10,
    why: 'A call of 2 KiB becomes an event of 70 KiB, because it has the names and addresses of the users.',
    prepare: (target) =>
      store(
        target,
        times(KNOWN / MOST, (page) => {
          const users = times(MOST, (number) => ({ ...knownUser(page * MOST + number), ...DETAILS }));
          return /** @type {[string, object]} */ (['users/add', { organizationId: ORGANIZATION, users }]);
        }),
      ),
    start(target) {
      const id = newIds();
      let number = 0;
      return new Calls(target).closedLoop(AT_ONCE, () => {
        const first = (number++ * HUNDRED) % KNOWN;
        const users = times(HUNDRED, (user) => knownUser(first + user));
        return ['users/add', target.tenant, bodyOf({ organizationId: ORGANIZATION, documentId: id(), users })];
      });
    },
  },
];
