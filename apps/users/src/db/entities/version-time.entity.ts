import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * Describes table `version_times` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a day on which memberships ended, until they are deleted. About a month of rows.
 */
@Entity('version_times')
export class VersionTimeEntity {
  /** In UTC. */
  @PrimaryColumn('date', { primaryKeyConstraintName: 'version_times_pkey' })
  day: string;

  /** A version that was drawn on that day. Smaller ones were drawn before. */
  @Column('bigint')
  version: string;

  /** The users who left up to this version have no ended membership any more. */
  @Column('bigint', { name: 'looked_to' })
  lookedTo: string;
}
