import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `members` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a membership of a user, copied from the users service. It stays for 30 days after the membership has ended: it refuses older
 * events. Events that are older than that are refused by their time.
 */
@Entity('members')
@Index('members_ended', ['removed'], { where: 'removed >= added' })
@Index('members_live', ['organization', 'userId', 'level', 'id', 'added'], { where: 'added > removed' })
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

  /**
   * Greatest version among the known additions; -1: none is known, 0: one without a version. The membership is live while it is greater than
   * `removed` and than the version in `departures`.
   */
  @Column('bigint', { default: 0 })
  added: string;

  /** Greatest version among the known removals; -1: none. */
  @Column('bigint', { default: -1 })
  removed: string;
}
