import { Entity, PrimaryColumn } from 'typeorm';

/**
 * Describes table `complete_members` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user whose memberships are all copied: earlier ones were fetched from the users service, later ones arrive as events.
 */
@Entity('complete_members')
export class CompleteMemberEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'complete_members_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'complete_members_pkey' })
  userId: string;
}
