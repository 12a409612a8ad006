import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, Unique } from 'typeorm';
import { ApiKeyEntity } from './api-key.entity';

/**
 * Describes table `tokens` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a token of an API key, stored as its hash. A key has several tokens during a rotation.
 */
@Entity('tokens')
@Unique('tokens_hash_key', ['hash'])
@Index('tokens_by_api_key', ['apiKey'])
export class TokenEntity {
  /** Name of the token on the command line; not derived from the secret. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'tokens_pkey' })
  id: string;

  @Column({ type: 'text', name: 'api_key', collation: 'C' })
  apiKey: string;

  @ManyToOne(() => ApiKeyEntity)
  @JoinColumn({ name: 'api_key', foreignKeyConstraintName: 'tokens_api_key_fkey' })
  apiKeyEntity?: ApiKeyEntity;

  /** SHA-256 of the token. */
  @Column('bytea')
  hash: Buffer;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt: Date | null;

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt: Date | null;
}
