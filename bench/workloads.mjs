// The requests of clients. Pools of ready bodies: making them must not cost more than what is measured.

const ORGANIZATION = 'bench';
const DOCUMENTS = 200;
const USERS = 2000;
const POOL = 256;

/** @param {number} number */
const user = (number) => ({ userId: `user${number}`, name: `User Number ${number}`, email: `user${number}@example.com` });

/**
 * A notification as a comment in a document makes it.
 * @param {number} number
 * @param {number} recipients
 */
export function notification(number, recipients) {
  const actionUser = user(number % USERS);
  return {
    organizationId: ORGANIZATION,
    documentId: `document${number % DOCUMENTS}`,
    locationId: `location${number % 10}`,
    actionUser,
    displayHeadlineMessageTemplate: '{actionUser} mentioned {recipientUser} in {place}',
    displayHeadlineMessageTemplateData: { actionUser, recipientUser: 'you', place: `Paragraph ${number}` },
    displayBodyMessage: 'Could you have a look at the second half of this, please? I am not sure about the numbers.',
    notifyUsers: Array.from({ length: recipients }, (_, index) => user((number * 7 + index) % USERS)),
  };
}

/** @param {object} data */
const body = (data) => JSON.stringify({ data });

/** @param {number} size @param {(number: number) => string} make */
function fromPool(size, make) {
  const pool = Array.from({ length: size }, (_, number) => Buffer.from(make(number)));
  let next = 0;
  return () => pool[next++ % size];
}

/** @param {object[]} requests */
const inTurn = (requests) => fromPool(requests.length, (number) => body(requests[number]));

/** @typedef {{ name: string, recipients?: number, users?: number, seed?: string, requests?: object[] }} Workload */
/** @typedef {Required<Omit<Workload, 'name'>>} Settings */

const WORKLOADS = {
  /** Without a notificationId each call stores another one, whatever its content. */
  addNotification: (/** @type {Settings} */ { recipients }) =>
    fromPool(recipients > 10 ? 32 : POOL, (number) => body(notification(number, recipients))),
  /** Users that nobody has seen before: an update that changes nothing would be cheaper. */
  addUsers: (/** @type {Settings} */ { users, seed }) => {
    let next = 0;
    return () => {
      const first = next;
      next += users;
      return body({
        organizationId: ORGANIZATION,
        users: Array.from({ length: users }, (_, index) => {
          const id = `${seed}-${first + index}`;
          return { userId: id, name: `User ${id}`, email: `${id}@example.com` };
        }),
      });
    };
  },
  /** The given requests in turn, again and again: a repeated read costs what the first one did. */
  requests: (/** @type {Settings} */ { requests }) => inTurn(requests),
  /** The same, each once: a repeated change would change nothing, and cost less. @throws Error when there are no more */
  requestsOnce: (/** @type {Settings} */ { requests }) => {
    const next = inTurn(requests);
    let made = 0;
    return () => {
      if (made++ === requests.length) throw new Error(`there are no more than ${requests.length} requests`);
      return next();
    };
  },
};

/**
 * @param {Workload} options
 * @returns {() => string | Buffer} the body of the next call
 */
export const bodiesOf = ({ name, ...options }) =>
  WORKLOADS[/** @type {keyof typeof WORKLOADS} */ (name)](/** @type {Settings} */ (options));
