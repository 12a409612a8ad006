import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** Where a document is and who may open it: a copy of what the users service knows. Without a row it is organizationPrivate. */
@Entity('document_access')
@Index('document_access_by_folder', ['organization', 'folderId', 'documentId'], { where: 'folder_id IS NOT NULL' })
@Index('document_access_public', ['organization', 'documentId'], { where: "access = 'public'" })
export class DocumentAccessEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'document_access_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'document_id', collation: 'C', primaryKeyConstraintName: 'document_access_pkey' })
  documentId: string;

  @Column({ type: 'text', name: 'folder_id', collation: 'C', nullable: true })
  folderId: string | null;

  @Column({ type: 'text', collation: 'C' })
  access: string;

  /** Of the newest event that was applied. */
  @Column('bigint')
  version: string;
}
