import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * Describes table `read_marks` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user who has marked everything up to a moment as read.
 */
@Entity('read_marks')
export class ReadMarkEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'read_marks_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'read_marks_pkey' })
  userId: string;

  /** Notifications up to this timestamp are read, except for those with a valid row in `readings`. Never later than what may still be committed. */
  @Column('bigint', { name: 'read_up_to' })
  readUpTo: string;

  /** The latest moment that was marked. A call with an earlier one, or with the same one again, has no effect. */
  @Column('bigint')
  asked: string;
}
