import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/**
 * Describes table `outbox` for the test that compares entities with migrations; queries are raw SQL.
 * A row is an event that is not published yet.
 */
@Entity('outbox')
export class OutboxEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS', primaryKeyConstraintName: 'outbox_pkey' })
  seq: string;

  @Column({ type: 'text', collation: 'C', default: () => '(gen_random_uuid())' })
  id: string;

  /** null: the event is about no organization, and `apiKey` has the tenant. */
  @Column('bigint', { nullable: true })
  organization: string | null;

  /** The notification that it is made of, unless it has a body of its own. */
  @Column({ type: 'text', name: 'notification_id', collation: 'C', nullable: true })
  notificationId: string | null;

  @Column('timestamptz', { name: 'occurred_at', default: () => 'clock_timestamp()' })
  occurredAt: Date;

  @Column({ type: 'text', collation: 'C', default: 'notification.added.v1' })
  type: string;

  @Column('json', { nullable: true })
  body: object | null;

  /** W3C trace context of the call that wrote the event, when it had one. */
  @Column({ type: 'text', collation: 'C', nullable: true })
  trace: string | null;

  /** Only of an event that is about no organization. */
  @Column({ type: 'text', name: 'api_key', collation: 'C', nullable: true })
  apiKey: string | null;
}
