import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** An event that is not published yet. */
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

  /** Subject of the event: of one about an API key, that key. */
  @Column({ type: 'text', name: 'organization_id', collation: 'C' })
  organizationId: string;

  @Column('timestamptz', { name: 'occurred_at', default: () => 'clock_timestamp()' })
  occurredAt: Date;

  @Column('json')
  data: object;
}
