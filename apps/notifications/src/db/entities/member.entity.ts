import { Entity, PrimaryColumn } from 'typeorm';

/**
 * Describes table `members` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a membership of a user, copied from the users service.
 */
@Entity('members')
export class MemberEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'members_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'members_pkey' })
  userId: string;

  /** organization, folder or document. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'members_pkey' })
  level: string;

  /** Id of the folder or document; empty for the organization. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'members_pkey' })
  id: string;
}
