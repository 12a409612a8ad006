import type { DataSource } from 'typeorm';
import { deleteBy } from '@app/postgres/retention/deletion-loop';
import { DELETE_LEFT, DELETE_REMOVED, recordVersion } from '../src/db/ended-members.repository';

export const DAY_MS = 24 * 60 * 60 * 1000;
/** More days than a version is kept. */
const FAR = 100_000;

/** Lets days pass for the versions that are kept, and deletes the memberships that are due then. */
export async function daysPass(dataSource: DataSource, days: number): Promise<void> {
  await recordVersion(dataSource);
  // Two steps: a row must not meet that of the day before.
  await dataSource.query('UPDATE version_times SET day = day - $1::int', [FAR]);
  await dataSource.query('UPDATE version_times SET day = day + $1::int', [FAR - days]);
  await deleteDue(dataSource);
}

/** The work of each process on copied memberships every ten minutes. */
export async function deleteDue(dataSource: DataSource, most = 64): Promise<void> {
  await recordVersion(dataSource);
  for (const statement of [DELETE_REMOVED, DELETE_LEFT]) while ((await deleteBy(dataSource, statement, [most])).more);
}
