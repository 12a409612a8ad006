import { Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * Describes table `deletions` for the test that compares entities with migrations; queries are raw SQL.
 * A row is a command that deletes notifications, or marks all as read. A redelivery goes on with its moment, so that it changes nothing that came
 * later.
 */
@Entity('deletions')
@Index('deletions_by_age', ['createdAt'])
export class DeletionEntity {
  @PrimaryColumn('text', { name: 'api_key', collation: 'C', primaryKeyConstraintName: 'deletions_pkey' })
  apiKey: string;

  /** `delete` or `update`, a space, and the message id. */
  @PrimaryColumn('text', { name: 'message_id', collation: 'C', primaryKeyConstraintName: 'deletions_pkey' })
  messageId: string;

  /** Epoch milliseconds of the database clock. */
  @Column('bigint')
  moment: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;
}
