import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { OrganizationEntity } from './organization.entity';

/**
 * Describes table `users` for the test that compares entities with migrations; queries are raw SQL.
 * A row holds the details of a user in one organization. The member tables hold the memberships.
 */
@Entity('users')
@Index('users_by_departure', ['leftVersion'], { where: 'left_version >= 0' })
@Index('users_departed', ['organization', 'userId'], { where: 'left_version >= 0' })
export class UserEntity {
  /** First in the key, by which an erasure finds the organizations of a user. */
  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'users_pkey' })
  userId: string;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'users_pkey' })
  organization: string;

  @ManyToOne(() => OrganizationEntity)
  @JoinColumn({ name: 'organization', foreignKeyConstraintName: 'users_organization_fkey' })
  organizationEntity?: OrganizationEntity;

  /** null, here and below: never sent. */
  @Column('text', { nullable: true })
  name: string | null;

  @Column('text', { nullable: true })
  email: string | null;

  @Column('text', { nullable: true })
  initial: string | null;

  /** Whether the initial is generated from the name; false once a caller has sent an initial. */
  @Column('boolean', { name: 'initial_generated' })
  initialGenerated: boolean;

  /** Version of the last change; later changes have greater versions. */
  @Column('bigint', { default: 0 })
  version: string;

  /** Version at which the user last left the organization, with all its folders and documents; -1: never. */
  @Column('bigint', { name: 'left_version', default: -1 })
  leftVersion: string;
}
