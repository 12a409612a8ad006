import { Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { OrganizationEntity } from './organization.entity';

/** A folder that users have been added to. */
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
