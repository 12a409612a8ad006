import { Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/** The first answer to an Idempotency-Key: written in the statement that has the effect, kept for at least 24 hours. */
@Entity('idempotency_keys')
@Index('idempotency_keys_by_age', ['createdAt'])
export class IdempotencyKeyEntity {
  // Not a foreign key: every call of a tenant would lock the tenant's one row.
  @PrimaryColumn('text', { name: 'api_key', collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  apiKey: string;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  operation: string;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'idempotency_keys_pkey' })
  key: string;

  /** SHA-256 of the validated request. */
  @Column('bytea')
  fingerprint: Buffer;

  /** What the answer is made of, beside the request. */
  @Column('json')
  answer: unknown;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
