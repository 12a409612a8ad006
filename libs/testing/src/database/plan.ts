import type { Client } from 'pg';
import type { EntityManager, QueryRunner } from 'typeorm';
import { internalsOf } from '@app/postgres/connections/pg-internals';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Index Searches'?: number;
  'Actual Loops': number;
  'Actual Rows': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** Runs a statement, and returns all nodes of its plan. The server must not have compiled it, which takes longer than any statement of ours. */
export async function planOf(connection: QueryRunner | EntityManager, statement: string): Promise<PlanNode[]> {
  const [explained] = (await connection.query(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, BUFFERS OFF) ${statement}`)) as {
    'QUERY PLAN': [{ Plan: PlanNode; JIT?: unknown }];
  }[];
  const [{ Plan, JIT }] = explained['QUERY PLAN'];
  if (JIT) throw new Error(`compiled: ${JSON.stringify(JIT)}`);
  return flatten(Plan);
}

/**
 * Prepares a connection for a test of plans, not of times. Filling the tables may take long on a slow machine, also for the client. An ANALYZE of
 * PostgreSQL's own would make the plan of a prepared statement anew meanwhile.
 */
export async function prepareForPlans(runner: QueryRunner): Promise<void> {
  internalsOf((await runner.connect()) as Client).connection.stream.setTimeout(0);
  await runner.query('SET statement_timeout = 0');
  await runner.query(`DO $$
    DECLARE name text;
    BEGIN
      FOR name IN SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', name);
      END LOOP;
    END $$`);
}

/** Rows that a node produced or discarded, over all its loops. */
export const touchedBy = (node: PlanNode): number =>
  node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0));

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)];
