import type { EntityManager, QueryRunner } from 'typeorm';

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

/** Runs a statement, and returns all nodes of its plan. */
export async function planOf(connection: QueryRunner | EntityManager, statement: string): Promise<PlanNode[]> {
  const [explained] = (await connection.query(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) ${statement}`)) as {
    'QUERY PLAN': [{ Plan: PlanNode }];
  }[];
  return flatten(explained['QUERY PLAN'][0].Plan);
}

/** Rows that a node produced or discarded, over all its loops. */
export const touchedBy = (node: PlanNode): number =>
  node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0));

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)];
