import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/**
 * Describes table `outbox` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a notification whose event is not published yet.
 */
@Entity('outbox')
export class OutboxEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS', primaryKeyConstraintName: 'outbox_pkey' })
  seq: string;

  @Column({ type: 'text', collation: 'C', default: () => '(gen_random_uuid())' })
  id: string;

  @Column('bigint')
  organization: string;

  @Column({ type: 'text', name: 'notification_id', collation: 'C' })
  notificationId: string;

  @Column('timestamptz', { name: 'occurred_at', default: () => 'clock_timestamp()' })
  occurredAt: Date;
}
