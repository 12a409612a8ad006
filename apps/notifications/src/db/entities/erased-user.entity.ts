import { Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { ErasureEntity } from './erasure.entity';

/**
 * Describes table `erased_users` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user of an erasure: older events about this user are refused. The only trace that is left, for a week.
 */
@Entity('erased_users')
@Index('erased_users_by_erasure', ['erasure'])
export class ErasedUserEntity {
  @PrimaryColumn('text', { name: 'api_key', collation: 'C', primaryKeyConstraintName: 'erased_users_pkey' })
  apiKey: string;

  /** SHA-256 of the userId. */
  @PrimaryColumn('bytea', { name: 'user_hash', primaryKeyConstraintName: 'erased_users_pkey' })
  userHash: Buffer;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'erased_users_pkey' })
  erasure: string;

  @ManyToOne(() => ErasureEntity, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'erasure', foreignKeyConstraintName: 'erased_users_erasure_fkey' })
  erasureEntity?: ErasureEntity;
}
