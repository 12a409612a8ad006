import type { DataSource } from 'typeorm';
import { deleteBy, DeletionLoop, type OldRows } from '@app/postgres/retention/deletion-loop';
import { expiredKeys } from '@app/postgres/retention/expired-keys';
import { membershipsDeleted } from '@app/postgres/metrics';
import { DELETE_LEFT, DELETE_REMOVED, recordVersion } from '../db/ended-members.repository';
import {
  DAY_MS,
  DELETE_OLD_READINGS,
  deleteOlderThan,
  FORGET_ERASURES,
  FORGET_FIRST_RUNS,
  FREE_IDS,
} from '../db/retention.repository';
import { retentionDeleted } from '../metrics';

/**
 * Deletes notifications that are older than `RETENTION_DAYS`, with their read state. Frees the ids of notifications that were deleted more
 * than 25 hours ago. Forgets erasures after a week, and moments of commands after 25 hours. Deletes copied memberships 30 days after their
 * end, and expired Idempotency-Keys.
 */
export class Retention extends DeletionLoop {
  /** @param days maximum age of notifications; 0 keeps all of them */
  constructor(dataSource: DataSource, days: number) {
    const old: OldRows[] = [
      { name: 'notifications', deleteSome: (most) => deleteOlderThan(dataSource, days, most), counter: retentionDeleted },
      { name: 'read states', deleteSome: (most) => deleteBy(dataSource, DELETE_OLD_READINGS, [most, days * DAY_MS]) },
    ];
    super([
      { name: 'ids of deleted notifications', deleteSome: (most) => deleteBy(dataSource, FREE_IDS, [most]) },
      { name: 'erasures', deleteSome: (most) => deleteBy(dataSource, FORGET_ERASURES, [most]) },
      { name: 'moments of commands', deleteSome: (most) => deleteBy(dataSource, FORGET_FIRST_RUNS, [most]) },
      { name: 'versions', deleteSome: () => recordVersion(dataSource) },
      { name: 'memberships', deleteSome: (most) => deleteBy(dataSource, DELETE_REMOVED, [most]), counter: membershipsDeleted },
      {
        name: 'memberships of users who left',
        deleteSome: (most) => deleteBy(dataSource, DELETE_LEFT, [most]),
        counter: membershipsDeleted,
      },
      expiredKeys(dataSource),
      ...(days > 0 ? old : []),
    ]);
  }
}
