import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { OrganizationEntity } from './organization.entity';

/** What is known of a user in one organization; where the user was added stands in the member tables. */
@Entity('users')
export class UserEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'users_pkey' })
  organization: string;

  @ManyToOne(() => OrganizationEntity)
  @JoinColumn({ name: 'organization', foreignKeyConstraintName: 'users_organization_fkey' })
  organizationEntity?: OrganizationEntity;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'users_pkey' })
  userId: string;

  /** null here and below: never sent. */
  @Column('text', { nullable: true })
  name: string | null;

  @Column('text', { nullable: true })
  email: string | null;

  @Column('text', { nullable: true })
  initial: string | null;

  /** Whether the initial follows the name; false from the first time that one was sent. */
  @Column('boolean', { name: 'initial_generated' })
  initialGenerated: boolean;

  /** Of the last change; later changes have greater ones. */
  @Column('bigint', { default: 0 })
  version: string;
}
