import { Entity, PrimaryColumn } from 'typeorm';

/** Where a user was added to: a copy of what the users service knows. */
@Entity('members')
export class MemberEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'members_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'members_pkey' })
  userId: string;

  /** organization, folder or document. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'members_pkey' })
  level: string;

  /** The folder or document; empty for the organization. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'members_pkey' })
  id: string;
}
