import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A user as it is kept in a notification. */
export interface KeptUser {
  userId: string;
  name?: string;
  email?: string;
}

/** What was sent, apart from what is a column. */
export interface NotificationContent {
  actionUser: KeptUser;
  displayHeadlineMessageTemplate: string;
  displayHeadlineMessageTemplateData?: Record<string, unknown>;
  displayBodyMessage?: string;
  notificationSourceData?: Record<string, unknown>;
  notifyUsers: KeptUser[];
}

/** One notification, however many users it reaches: who is named stands in recipients, "all" is a flag here. */
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
export class NotificationEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'notifications_pkey' })
  organization: string;

  /** The caller's notificationId, else the identity of the command: a command that is delivered again meets its own row. */
  @PrimaryColumn('text', { collation: 'C', primaryKeyConstraintName: 'notifications_pkey' })
  id: string;

  /** Epoch milliseconds by the clock of the database, so that all writers share one. */
  @Column('bigint')
  timestamp: string;

  @Column({ type: 'text', name: 'document_id', collation: 'C' })
  documentId: string;

  @Column({ type: 'text', name: 'location_id', collation: 'C', nullable: true })
  locationId: string | null;

  @Column('boolean', { name: 'notify_all' })
  notifyAll: boolean;

  /** Bytes of content: pages are cut by it before content is read. */
  @Column('integer')
  size: number;

  /** SHA-256 of what was sent: tells a repetition from another notification under the same id. */
  @Column('bytea')
  fingerprint: Buffer;

  @Column('json')
  content: NotificationContent;
}
