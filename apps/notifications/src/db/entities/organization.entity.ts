import { Column, Entity, PrimaryGeneratedColumn, Unique } from 'typeorm';

/** An organization of one tenant. Its number stands for both in every other table. */
@Entity('organizations')
@Unique('organizations_api_key_organization_id_key', ['apiKey', 'organizationId'])
export class OrganizationEntity {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'organizations_pkey',
  })
  id: string;

  @Column({ type: 'text', name: 'api_key', collation: 'C' })
  apiKey: string;

  @Column({ type: 'text', name: 'organization_id', collation: 'C' })
  organizationId: string;
}
