import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `departures` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user who has left an organization, with all its folders and documents. Later memberships have greater versions.
 * Deleted after 30 days, when it ends no membership any more.
 */
@Entity('departures')
@Index('departures_by_version', ['version'])
export class DepartureEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'departures_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'departures_pkey' })
  userId: string;

  /** Greatest version among all departures of the user. */
  @Column('bigint')
  version: string;
}
