import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** A tenant. The key is a public identifier; what proves it is a token. */
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
