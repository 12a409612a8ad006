import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { FolderEntity } from './folder.entity';
import { OrganizationEntity } from './organization.entity';

/**
 * Describes table `documents` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a document that users were added to, or that documents.set has set.
 */
@Entity('documents')
export class DocumentEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'documents_pkey' })
  organization: string;

  @ManyToOne(() => OrganizationEntity)
  @JoinColumn({ name: 'organization', foreignKeyConstraintName: 'documents_organization_fkey' })
  organizationEntity?: OrganizationEntity;

  @PrimaryColumn('text', { name: 'document_id', collation: 'C', primaryKeyConstraintName: 'documents_pkey' })
  documentId: string;

  @Column({ type: 'text', name: 'folder_id', collation: 'C', nullable: true })
  folderId: string | null;

  @ManyToOne(() => FolderEntity)
  @JoinColumn([
    { name: 'organization', referencedColumnName: 'organization', foreignKeyConstraintName: 'documents_folder_fkey' },
    { name: 'folder_id', referencedColumnName: 'folderId', foreignKeyConstraintName: 'documents_folder_fkey' },
  ])
  folder?: FolderEntity | null;

  /** Access type: users who may open it in addition to its own users and the users of its folder. */
  @Column({ type: 'text', collation: 'C', default: 'organizationPrivate' })
  access: string;

  /** Version of the last change by documents.set; 0 when it was never set. */
  @Column('bigint', { default: 0 })
  version: string;
}
