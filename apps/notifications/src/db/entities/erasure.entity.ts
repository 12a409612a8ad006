import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `erasures` for the test that compares entities with migrations; queries are raw SQL.
 * A row is an order of the users service to erase users. When it is complete the row stays for a week, without their ids.
 */
@Entity('erasures')
@Index('erasures_open', ['apiKey', 'receivedAt'], { where: 'user_ids IS NOT NULL' })
@Index('erasures_complete', ['receivedAt'], { where: 'user_ids IS NULL' })
export class ErasureEntity {
  /** The id of the event `user.erased.v1`. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'erasures_pkey' })
  id: string;

  @Column({ type: 'text', name: 'api_key', collation: 'C' })
  apiKey: string;

  /** null: the erasure is complete. */
  @Column('text', { name: 'user_ids', array: true, nullable: true })
  userIds: string[] | null;

  /** null: all organizations of the API key. */
  @Column('text', { name: 'organization_ids', array: true, nullable: true })
  organizationIds: string[] | null;

  /** Memberships up to it are erased. */
  @Column('bigint')
  version: string;

  /** Epoch milliseconds: notifications and read states up to it are erased. */
  @Column('bigint', { name: 'up_to' })
  upTo: string;

  @Column('timestamptz', { name: 'received_at', default: () => 'clock_timestamp()' })
  receivedAt: Date;

  /** people, notifications, or people again. */
  @Column({ type: 'text', collation: 'C', default: 'people' })
  stage: string;

  /** Position of the stage: what is before this organization is done. */
  @Column({ type: 'text', name: 'at_organization', collation: 'C', default: '' })
  atOrganization: string;

  /** Position in the organization; null: the organization is done. */
  @Column({ type: 'text', name: 'at_notification', collation: 'C', nullable: true })
  atNotification: string | null;

  /** Time at which the last notification was looked at. */
  @Column('timestamptz', { name: 'walked_at', nullable: true })
  walkedAt: Date | null;

  /** Set with `walkedAt`: events with a smaller `seq` may still have data of the users. */
  @Column('bigint', { name: 'outbox_seq', nullable: true })
  outboxSeq: string | null;
}
