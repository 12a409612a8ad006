import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * Describes table `version_times` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a day of the last month, from which on a membership ended before it by at least 30 days is deleted.
 */
@Entity('version_times')
export class VersionTimeEntity {
  /** In UTC. */
  @PrimaryColumn('date', { primaryKeyConstraintName: 'version_times_pkey' })
  day: string;

  /** Greatest version of a removal or a departure that was known on that day. Smaller ones were drawn before. */
  @Column('bigint')
  version: string;
}
