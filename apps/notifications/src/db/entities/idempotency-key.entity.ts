import { Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `idempotency_keys` for the test that compares entities with migrations; queries are raw SQL.
 * A row is the first answer to an Idempotency-Key. The statement with the effect writes it too. Kept for at least 24 hours.
 */
@Entity('idempotency_keys')
@Index('idempotency_keys_by_age', ['createdAt'])
export class IdempotencyKeyEntity {
  @PrimaryColumn('text', { name: 'api_key', collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  apiKey: string;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  operation: string;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  key: string;

  /** SHA-256 of the validated request. */
  @Column('bytea')
  fingerprint: Buffer;

  /** The only part of the answer that varies. */
  @Column({ type: 'text', name: 'notification_id', collation: 'C' })
  notificationId: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
