import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `readings` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a notification that a user has marked as read or unread by itself. The timestamp is part of the key, because an id can be used again.
 */
@Entity('readings')
@Index('readings_unread', ['organization', 'userId', 'asked', 'timestamp', 'notificationId'], { where: '(NOT read)' })
@Index('readings_by_age', ['timestamp', 'organization'])
export class ReadingEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'readings_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'readings_pkey' })
  userId: string;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'readings_pkey' })
  timestamp: string;

  @PrimaryColumn('text', { name: 'notification_id', collation: 'C', primaryKeyConstraintName: 'readings_pkey' })
  notificationId: string;

  @Column('boolean')
  read: boolean;

  /** `read_marks.asked` at the time of writing, or -1. With another value there "unread" is void up to the mark. */
  @Column('bigint')
  asked: string;
}
