import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `recipients` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a user that a notification names.
 */
@Entity('recipients')
@Index('recipients_by_document', ['organization', 'userId', 'documentId', 'timestamp', 'notificationId'])
@Index('recipients_by_location', ['organization', 'userId', 'locationId', 'timestamp', 'notificationId'], {
  where: '(location_id IS NOT NULL)',
})
@Index('recipients_by_document_location', ['organization', 'userId', 'documentId', 'locationId', 'timestamp', 'notificationId'], {
  where: '(location_id IS NOT NULL)',
})
export class RecipientEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'recipients_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'recipients_pkey' })
  userId: string;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'recipients_pkey' })
  timestamp: string;

  @PrimaryColumn('text', { name: 'notification_id', collation: 'C', primaryKeyConstraintName: 'recipients_pkey' })
  notificationId: string;

  @Column({ type: 'text', name: 'document_id', collation: 'C' })
  documentId: string;

  @Column({ type: 'text', name: 'location_id', collation: 'C', nullable: true })
  locationId: string | null;
}
