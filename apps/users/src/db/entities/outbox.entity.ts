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

  @Column({ type: 'text', collation: 'C' })
  type: string;

  @Column({ type: 'text', name: 'api_key', collation: 'C' })
  apiKey: string;

  /** Subject of the event: the organization, or the API key if the event is about one. */
  @Column({ type: 'text', name: 'organization_id', collation: 'C' })
  organizationId: string;

  @Column('timestamptz', { name: 'occurred_at', default: () => 'clock_timestamp()' })
  occurredAt: Date;

  @Column('json')
  data: object;

  /** W3C trace context of the call that wrote the event, when it had one. */
  @Column({ type: 'text', collation: 'C', nullable: true })
  trace: string | null;
}
