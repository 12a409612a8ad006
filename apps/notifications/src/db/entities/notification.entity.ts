import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A user in the content of a notification. */
export interface KeptUser {
  userId: string;
  name?: string;
  email?: string;
}

/** Content of a notification without the fields that are columns. */
export interface NotificationContent {
  actionUser: KeptUser;
  displayHeadlineMessageTemplate: string;
  displayHeadlineMessageTemplateData?: Record<string, unknown>;
  displayBodyMessage?: string;
  notificationSourceData?: Record<string, unknown>;
  notifyUsers: KeptUser[];
}

/**
 * Describes table `notifications` for the test that compares entities with migrations; queries are raw SQL.
 * A row is one notification for all its users. Table `recipients` holds the named users; "all" is the flag `notify_all`.
 */
@Entity('notifications')
@Index('notifications_by_document', ['organization', 'documentId', 'timestamp', 'id'])
@Index('notifications_by_location', ['organization', 'documentId', 'locationId', 'timestamp', 'id'], {
  where: '(location_id IS NOT NULL)',
})
@Index('notifications_to_all', ['organization', 'timestamp', 'id', 'documentId'], { where: 'notify_all' })
@Index('notifications_to_all_by_document', ['organization', 'documentId', 'timestamp', 'id'], { where: 'notify_all' })
@Index('notifications_to_all_by_location', ['organization', 'locationId', 'timestamp', 'id', 'documentId'], {
  where: '(notify_all AND (location_id IS NOT NULL))',
})
@Index('notifications_to_all_by_document_location', ['organization', 'documentId', 'locationId', 'timestamp', 'id'], {
  where: '(notify_all AND (location_id IS NOT NULL))',
})
@Index('notifications_by_age', ['timestamp'])
@Index('notifications_deleted', ['timestamp'], { where: "(document_id = ''::text)" })
export class NotificationEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'notifications_pkey' })
  organization: string;

  /** The caller's notificationId, else the message_id of the command: a redelivered command finds its own row. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'notifications_pkey' })
  id: string;

  /** Epoch milliseconds of the database clock, because all writers must use the same clock. */
  @Column('bigint')
  timestamp: string;

  /** Empty when the notification is deleted. Then the row keeps its id taken for a day. */
  @Column({ type: 'text', name: 'document_id', collation: 'C' })
  documentId: string;

  @Column({ type: 'text', name: 'location_id', collation: 'C', nullable: true })
  locationId: string | null;

  @Column('boolean', { name: 'notify_all' })
  notifyAll: boolean;

  /** Size of the content in bytes: pages are limited by it before the content is read. */
  @Column('integer')
  size: number;

  /** SHA-256 of the request: it distinguishes a repetition from another notification with the same id. */
  @Column('bytea')
  fingerprint: Buffer;

  @Column('json')
  content: NotificationContent;
}
