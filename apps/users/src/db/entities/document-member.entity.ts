import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { DocumentEntity } from './document.entity';
import { UserEntity } from './user.entity';

/**
 * Describes table `document_members` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user who was added to a document. This adds the user to nothing else.
 */
@Entity('document_members')
@Index('document_members_ended', ['removed'], { where: 'removed >= added' })
@Index('document_members_by_user', ['organization', 'userId', 'documentId'])
export class DocumentMemberEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'document_members_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'document_id', collation: 'C', primaryKeyConstraintName: 'document_members_pkey' })
  documentId: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'document_members_pkey' })
  userId: string;

  /** Version of the last addition. The membership is live while it is greater than `removed` and than `left_version` of the user. */
  @Column('bigint', { default: () => "nextval('versions')" })
  added: string;

  /** Version of the last removal; -1: never. */
  @Column('bigint', { default: -1 })
  removed: string;

  @ManyToOne(() => DocumentEntity)
  @JoinColumn([
    { name: 'organization', referencedColumnName: 'organization', foreignKeyConstraintName: 'document_members_document_fkey' },
    { name: 'document_id', referencedColumnName: 'documentId', foreignKeyConstraintName: 'document_members_document_fkey' },
  ])
  document?: DocumentEntity;

  @ManyToOne(() => UserEntity)
  @JoinColumn([
    { name: 'organization', referencedColumnName: 'organization', foreignKeyConstraintName: 'document_members_user_fkey' },
    { name: 'user_id', referencedColumnName: 'userId', foreignKeyConstraintName: 'document_members_user_fkey' },
  ])
  user?: UserEntity;
}
