import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/**
 * Describes table `api_keys` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a tenant. The key is a public identifier; a token proves it.
 */
@Entity('api_keys')
export class ApiKeyEntity {
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'api_keys_pkey' })
  key: string;

  @Column('text')
  name: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @Column('timestamptz', { name: 'disabled_at', nullable: true })
  disabledAt: Date | null;
}
