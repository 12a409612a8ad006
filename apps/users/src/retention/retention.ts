import type { DataSource } from 'typeorm';
import { deleteBy, DeletionLoop } from '@app/postgres/retention/deletion-loop';
import { expiredKeys } from '@app/postgres/retention/expired-keys';
import { membershipsDeleted } from '@app/postgres/metrics';
import { deleteLeft, deleteRemoved, recordVersion } from '../db/ended-members.repository';
import { MEMBER_TABLES } from '../db/level';

/** Deletes memberships that ended more than 30 days ago, and expired Idempotency-Keys. */
export class Retention extends DeletionLoop {
  constructor(dataSource: DataSource) {
    super([
      { name: 'versions', deleteSome: () => recordVersion(dataSource) },
      ...MEMBER_TABLES.map((table) => ({
        name: table,
        deleteSome: (most: number) => deleteBy(dataSource, deleteRemoved(table, most)),
        counter: membershipsDeleted,
      })),
      {
        name: 'memberships of users who left',
        deleteSome: (most) => deleteBy(dataSource, deleteLeft(most)),
        counter: membershipsDeleted,
      },
      expiredKeys(dataSource),
    ]);
  }
}
