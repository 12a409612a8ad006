// Every attack, and which of them run at the same time.
import { CALLERS } from './caller.mjs';
import { HTTP_CALLS } from './http-calls.mjs';
import { HTTP_SOCKETS } from './http-sockets.mjs';
import { LISTENERS } from './listener.mjs';
import { FORGERS } from './publisher-forged.mjs';
import { PUBLISHERS } from './publisher.mjs';

/** @typedef {import('../neighbour-system.ts').Target} Target */

/**
 * @typedef {object} Attack
 * @property {string} name
 * @property {string} why it may hurt somebody
 * @property {number} [seconds] how long it lasts
 * @property {(target: Target) => Promise<void>} [prepare] what is not the attack itself
 * @property {(target: Target) => { stop: () => string | Promise<string> } | Promise<{ stop: () => string | Promise<string> }>} start
 *   `stop` ends it and says what was offered
 */

/** @type {readonly Attack[]} */
export const ATTACKS = [...HTTP_CALLS, ...HTTP_SOCKETS, ...PUBLISHERS, ...FORGERS, ...CALLERS, ...LISTENERS];

export const PAIRS = [
  {
    of: ['heavy pages, 64 in a loop', '100,000 direct commands at once'],
    why: 'reads and writes meet in one pool of the database',
  },
  { of: ['1,000 recipients at full speed', '100,000 direct commands at once'], why: 'dear and many, in one commit' },
  { of: ['malformed messages', 'an expiration flood behind a backlog'], why: 'both ways into the dead letters at once' },
  { of: ['malformed messages', 'poisonous messages'], why: 'suspects need a place for their letters while others fill it' },
  { of: ['pipelining without reading', 'bodies of 1 MiB'], why: 'bytes that wait to be sent, and bytes that arrive' },
  { of: ['trickle reading', 'heavy pages, 64 in a loop'], why: 'places that are held, while somebody asks for more' },
  { of: ['bad credentials, 2,000 a second', 'commands for ever new API keys'], why: 'both ask the users service' },
  { of: ['a stuck listener', '100,000 direct commands at once'], why: 'an outbox that grows while it is held up' },
  { of: ['a listener that never consumes', 'replies that nobody reads'], why: 'both take the memory of the broker' },
  { of: ['2,000 connections of one account', 'a thousand keys at once'], why: 'many of both kinds of client' },
  { of: ['forged headers', 'a full queue of dead letters'], why: 'what cannot be put away is judged again and again' },
  { of: ['invented organizations', 'copies to other queues by CC'], why: 'caches are empty when the queue of questions is full' },
];

const SECONDS = 20;

/** What `npm run test:neighbours` runs: an attack alone, or two. In the middle of each one of two writers is killed. */
export const ROWS = [
  ...ATTACKS.map(({ name, why, seconds = SECONDS }) => ({ name, why, attacks: [name], seconds, kill: true })),
  ...PAIRS.map(({ of, why }) => ({ name: of.join(' + '), why, attacks: of, seconds: SECONDS, kill: true })),
];
