import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { FolderEntity } from './folder.entity';
import { UserEntity } from './user.entity';

/**
 * Describes table `folder_members` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user who was added to a folder. This adds the user to nothing else.
 */
@Entity('folder_members')
@Index('folder_members_ended', ['removed'], { where: 'removed >= added' })
@Index('folder_members_by_user', ['organization', 'userId', 'folderId'])
export class FolderMemberEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'folder_members_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'folder_id', collation: 'C', primaryKeyConstraintName: 'folder_members_pkey' })
  folderId: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'folder_members_pkey' })
  userId: string;

  /** Version of the last addition. The membership is live while it is greater than `removed` and than `left_version` of the user. */
  @Column('bigint', { default: () => "nextval('versions')" })
  added: string;

  /** Version of the last removal; -1: never. */
  @Column('bigint', { default: -1 })
  removed: string;

  @ManyToOne(() => FolderEntity)
  @JoinColumn([
    { name: 'organization', referencedColumnName: 'organization', foreignKeyConstraintName: 'folder_members_folder_fkey' },
    { name: 'folder_id', referencedColumnName: 'folderId', foreignKeyConstraintName: 'folder_members_folder_fkey' },
  ])
  folder?: FolderEntity;

  @ManyToOne(() => UserEntity)
  @JoinColumn([
    { name: 'organization', referencedColumnName: 'organization', foreignKeyConstraintName: 'folder_members_user_fkey' },
    { name: 'user_id', referencedColumnName: 'userId', foreignKeyConstraintName: 'folder_members_user_fkey' },
  ])
  user?: UserEntity;
}
