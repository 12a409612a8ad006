import { Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { OrganizationEntity } from './organization.entity';

/**
 * Describes table `documents` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a document that a notification has named.
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
}
