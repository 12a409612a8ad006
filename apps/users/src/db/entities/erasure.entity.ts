import { Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/**
 * Describes table `erasures` for the test that compares entities with migrations; queries are raw SQL.
 * A row is an erasure that is not complete in this service. Names and memberships are hidden from the moment it is there.
 */
@Entity('erasures')
@Index('erasures_by_key', ['apiKey', 'id'])
export class ErasureEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS', primaryKeyConstraintName: 'erasures_pkey' })
  id: string;

  @Column({ type: 'text', name: 'api_key', collation: 'C' })
  apiKey: string;

  @Column('text', { name: 'user_ids', array: true })
  userIds: string[];

  /** null: all organizations of the API key. */
  @Column('text', { name: 'organization_ids', array: true, nullable: true })
  organizationIds: string[] | null;

  /** Also `left_version` of the users: memberships up to it are erased. */
  @Column('bigint')
  version: string;

  /** Time of the database clock at which the users were locked. */
  @Column('timestamptz', { name: 'requested_at' })
  requestedAt: Date;

  /** Position among the users: what is up to it is done. */
  @Column({ type: 'text', name: 'at_user_id', collation: 'C', default: '' })
  atUserId: string;

  @Column('bigint', { name: 'at_organization', default: 0 })
  atOrganization: string;

  /** Set when all rows are gone. */
  @Column('timestamptz', { name: 'walked_at', nullable: true })
  walkedAt: Date | null;

  /** Set when no transaction runs that began before `walked_at`: events with a smaller `seq` may still have data of the users. */
  @Column('bigint', { name: 'outbox_seq', nullable: true })
  outboxSeq: string | null;
}
