import { CreateDateColumn, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { ApiKeyEntity } from './api-key.entity';

/**
 * Describes table `publisher_grants` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a broker account that may publish for an API key; `*` stands for every account.
 */
@Entity('publisher_grants')
export class PublisherGrantEntity {
  @PrimaryColumn('text', { name: 'api_key', collation: 'C', primaryKeyConstraintName: 'publisher_grants_pkey' })
  apiKey: string;

  @ManyToOne(() => ApiKeyEntity)
  @JoinColumn({ name: 'api_key', foreignKeyConstraintName: 'publisher_grants_api_key_fkey' })
  apiKeyEntity?: ApiKeyEntity;

  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'publisher_grants_pkey' })
  publisher: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
