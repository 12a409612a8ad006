import { Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `idempotency_keys` for the test that compares entities with migrations; queries are raw SQL.
 * A row is the first answer to an Idempotency-Key. The statement with the effect writes it too. Kept for at least 24 hours.
 */
@Entity('idempotency_keys')
@Index('idempotency_keys_by_age', ['createdAt'])
export class IdempotencyKeyEntity {
  // Not a foreign key: every call of a tenant would lock the tenant's row.
  @PrimaryColumn('text', { name: 'api_key', collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  apiKey: string;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  operation: string;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  key: string;

  /** SHA-256 of the validated request. */
  @Column('bytea')
  fingerprint: Buffer;

  /** Data from which, with the request, the answer is made. */
  @Column('json')
  answer: unknown;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
