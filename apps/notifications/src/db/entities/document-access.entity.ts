import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `document_access` for the test that compares entities with migrations; queries are raw SQL.
 * A row is the folder and the access type of a document, copied from the users service. Without a row a document is organizationPrivate.
 */
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

  /** Version of the newest applied event. */
  @Column('bigint')
  version: string;
}
