import { Column, Entity, PrimaryGeneratedColumn, Unique } from 'typeorm';

/**
 * Describes table `organizations` for the test that compares entities with migrations; queries are raw SQL.
 * A row is an organization of one tenant. Other tables refer to both by its number.
 */
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
