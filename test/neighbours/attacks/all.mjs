// All attacks, and the pairs that run at the same time.
import { CALLERS } from './caller.mjs';
import { HTTP_CALLS } from './http-calls.mjs';
import { HTTP_SOCKETS } from './http-sockets.mjs';
import { LIFECYCLE } from './lifecycle.mjs';
import { LISTENERS } from './listener.mjs';
import { MEMBERS } from './members.mjs';
import { FORGERS } from './publisher-forged.mjs';
import { PUBLISHERS } from './publisher.mjs';
import { READERS } from './readers.mjs';
import { WRITES } from './writes.mjs';

/** @typedef {import('../neighbour-system.ts').Target} Target */

/**
 * An attack that runs. `stop` ends it and returns the offered load as text, one for each part.
 * @typedef {{ stop: () => string | string[] | Promise<string> }} Running
 */

/**
 * @typedef {object} Attack
 * @property {string} name
 * @property {string} why it may hurt other tenants
 * @property {number} [seconds] how long it lasts
 * @property {(target: Target) => Promise<void>} [prepare] preparation before the attack
 * @property {(target: Target) => Running | Promise<Running>} start
 */

/** @type {readonly Attack[]} */
export const ATTACKS = [
  ...HTTP_CALLS,
  ...WRITES,
  ...LIFECYCLE,
  ...READERS,
  ...MEMBERS,
  ...HTTP_SOCKETS,
  ...PUBLISHERS,
  ...FORGERS,
  ...CALLERS,
  ...LISTENERS,
];

const PAIRS = [
  {
    of: ['heavy pages, 64 in a loop', '100,000 direct commands at once'],
    why: 'reads and writes meet in one pool of the database',
  },
  { of: ['1,000 recipients at full speed', '100,000 direct commands at once'], why: 'expensive and many commands in one commit' },
  { of: ['malformed messages', 'an expiration flood behind a backlog'], why: 'both ways into the dead-letter queues at once' },
  {
    of: ['malformed messages', 'poisonous messages'],
    why: 'suspects need room for their dead letters while others fill the queue',
  },
  { of: ['pipelining without reading', 'bodies of 1 MiB'], why: 'bytes waiting to be sent, and arriving bytes' },
  { of: ['trickle reading', 'heavy pages, 64 in a loop'], why: 'places that are held while other calls need places' },
  { of: ['bad credentials, 2,000 a second', 'commands for ever new API keys'], why: 'both ask the users service' },
  { of: ['a stuck listener', '100,000 direct commands at once'], why: 'an outbox that grows while it is blocked' },
  { of: ['a listener that never consumes', 'replies that nobody reads'], why: 'both take the memory of the broker' },
  { of: ['2,000 connections of one account', 'a thousand keys at once'], why: 'many clients of both kinds' },
  {
    of: ['forged headers', 'a full queue of dead letters'],
    why: 'refused letters need room while letters of our own failures have none',
  },
  {
    of: ['invented organizations', 'copies to other queues by CC'],
    why: 'new rows in every table while the queues of lane 0 are full',
  },
];

const SECONDS = 20;

/** Rows of `npm run test:neighbours`: one attack or two. In the middle of each row one of the two writers is killed. */
export const ROWS = [
  ...ATTACKS.map(({ name, why, seconds = SECONDS }) => ({ name, why, attacks: [name], seconds, kill: true })),
  ...PAIRS.map(({ of, why }) => ({ name: of.join(' + '), why, attacks: of, seconds: SECONDS, kill: true })),
];
