import { Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { OrganizationEntity } from './organization.entity';

/**
 * Describes table `folders` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a folder that users were added to, or that documents.set has named.
 */
@Entity('folders')
export class FolderEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'folders_pkey' })
  organization: string;

  @ManyToOne(() => OrganizationEntity)
  @JoinColumn({ name: 'organization', foreignKeyConstraintName: 'folders_organization_fkey' })
  organizationEntity?: OrganizationEntity;

  @PrimaryColumn('text', { name: 'folder_id', collation: 'C', primaryKeyConstraintName: 'folders_pkey' })
  folderId: string;
}
