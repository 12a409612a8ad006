import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity';

/**
 * Describes table `organization_members` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user who was added to the organization itself.
 */
@Entity('organization_members')
@Index('organization_members_ended', ['removed'], { where: 'removed >= added' })
export class OrganizationMemberEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'organization_members_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'organization_members_pkey' })
  userId: string;

  /** Version of the last addition. The membership is live while it is greater than `removed` and than `left_version` of the user. */
  @Column('bigint', { default: () => "nextval('versions')" })
  added: string;

  /** Version of the last removal; -1: never. */
  @Column('bigint', { default: -1 })
  removed: string;

  @ManyToOne(() => UserEntity)
  @JoinColumn([
    { name: 'organization', referencedColumnName: 'organization', foreignKeyConstraintName: 'organization_members_user_fkey' },
    { name: 'user_id', referencedColumnName: 'userId', foreignKeyConstraintName: 'organization_members_user_fkey' },
  ])
  user?: UserEntity;
}
