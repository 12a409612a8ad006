import { Pool } from 'undici';
import { buildWithoutEvents } from '../lib/without-events.mjs';
import { ORGANIZATION, seedOurs, usersOf } from '../lib/seed.mjs';
import { whole } from '../lib/statistics.mjs';
import { HEADERS } from '../lib/system.mjs';
import { trafficOf } from '../lib/traffic.mjs';
import { bodiesOf } from '../workloads.mjs';

export const title = 'bytes of a call: write-ahead log, disk, network';

const CONNECTIONS = 32;
const STORED = 10_000;
const PAGE = { organizationId: ORGANIZATION, pageSize: 50 };
/** Recipients of the second kind of add: a recipient costs the hundredth part of the difference. */
const MORE = 102;

/** @typedef {{ name: string, operation: string, workload: import('../workloads.mjs').Workload, calls: number, withoutEvents?: boolean, stored?: number }} Kind */

/** @type {Kind[]} */
const KINDS = [
  {
    name: 'add, 2 recipients',
    operation: 'notifications/add',
    workload: { name: 'addNotification', recipients: 2 },
    calls: 4000,
  },
  {
    name: 'the same without its event',
    operation: 'notifications/add',
    workload: { name: 'addNotification', recipients: 2 },
    calls: 4000,
    withoutEvents: true,
  },
  {
    name: `add, ${MORE} recipients`,
    operation: 'notifications/add',
    workload: { name: 'addNotification', recipients: MORE },
    calls: 1000,
  },
  {
    name: 'get, a page of 50',
    operation: 'notifications/get',
    workload: {
      name: 'requests',
      requests: Array.from({ length: usersOf(STORED) }, (_, number) => ({ ...PAGE, userId: `user${number}` })),
    },
    calls: 1000,
    stored: STORED,
  },
  {
    name: 'users/add, 100 new users',
    operation: 'users/add',
    workload: { name: 'addUsers', users: 100, seed: 'bytes' },
    calls: 100,
  },
];

const TABLES = `
  SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::float8 AS disk, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS wal
    FROM pg_class WHERE relkind = 'r' AND relname <> 'outbox' AND relnamespace IN ('users'::regnamespace, 'notifications'::regnamespace)`;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory */
export async function run(laboratory) {
  const rows = [];
  for (const kind of KINDS) {
    const { wal, disk, http, amqp, sql } = await measureBytes(laboratory, kind);
    rows.push([kind.name, ...[wal, disk, http.received, http.sent, amqp.received, amqp.sent, sql.received, sql.sent].map(whole)]);
  }
  const head = ['call', 'WAL', 'disk', 'HTTP in', 'HTTP out', 'RabbitMQ in', 'RabbitMQ out', 'PostgreSQL in', 'PostgreSQL out'];
  return { tables: [{ title: 'Bytes of a call', head, rows }] };
}

/**
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {Kind} kind
 */
async function measureBytes(laboratory, { operation, workload, calls, withoutEvents, stored }) {
  const system = await laboratory.freshSystem('ours', { dist: withoutEvents ? await buildWithoutEvents() : undefined });
  if (stored) await seedOurs(system.sql, stored, { toAll: false });
  const pool = new Pool(system.url, { connections: CONNECTIONS });
  const next = bodiesOf(workload);
  /** @param {number} count */
  const call = async (count) => {
    let left = count;
    const client = async () => {
      while (left-- > 0) {
        const { statusCode, body } = await pool.request({
          path: `/v1/${operation}`,
          method: 'POST',
          headers: HEADERS,
          body: next(),
        });
        const text = await body.text();
        if (statusCode !== 200) throw new Error(`${operation} is answered with ${statusCode}: ${text.slice(0, 200)}`);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, client));
    await system.settle();
  };
  const read = async () => {
    const { rows } = await system.sql.query(TABLES);
    const [http, amqp, sql] = [system.port, laboratory.rabbit.port, laboratory.postgres.port].map(trafficOf);
    return { ...rows[0], http, amqp, sql };
  };
  try {
    // Opens all connections.
    await call(2 * CONNECTIONS);
    const before = await read();
    await call(calls);
    return perCall(before, await read(), calls);
  } finally {
    await pool.close();
    await laboratory.stopSystem('ours');
  }
}

/** @typedef {{ received: number, sent: number }} Traffic */
/** @typedef {{ wal: number, disk: number, http: Traffic, amqp: Traffic, sql: Traffic }} Bytes */

/** @param {Bytes} before @param {Bytes} after @param {number} calls */
function perCall(before, after, calls) {
  /** @param {'http' | 'amqp' | 'sql'} link */
  const of = (link) => ({
    received: (after[link].received - before[link].received) / calls,
    sent: (after[link].sent - before[link].sent) / calls,
  });
  return {
    wal: (after.wal - before.wal) / calls,
    disk: (after.disk - before.disk) / calls,
    http: of('http'),
    amqp: of('amqp'),
    sql: of('sql'),
  };
}
