import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { FolderEntity } from './folder.entity';
import { OrganizationEntity } from './organization.entity';

/** A document that users have been added to, or that was set. */
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

  /** Who may open it beside its own users and those of its folder. */
  @Column({ type: 'text', collation: 'C', default: 'organizationPrivate' })
  access: string;

  /** Of the last change by documents.set; 0: none. */
  @Column('bigint', { default: 0 })
  version: string;
}
