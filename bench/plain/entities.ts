import { Column, Entity, Index, ManyToOne, OneToMany, PrimaryColumn, PrimaryGeneratedColumn, type Relation } from 'typeorm';
import type { AddNotificationDto } from './contract';

@Entity('api_keys')
export class ApiKey {
  @PrimaryColumn('text')
  key: string;

  @Column('text')
  tokenHash: string;
}

@Entity('notifications')
@Index(['apiKey', 'organizationId', 'documentId', 'timestamp'])
export class Notification {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Column('text')
  apiKey: string;

  @Column('text')
  organizationId: string;

  @Column('text')
  documentId: string;

  @Column('bigint')
  timestamp: number;

  @Column('json')
  content: AddNotificationDto;

  @OneToMany(() => Recipient, ({ notification }) => notification, { cascade: ['insert'] })
  recipients: Relation<Recipient>[];
}

@Entity('recipients')
@Index(['apiKey', 'organizationId', 'userId', 'timestamp'])
export class Recipient {
  @ManyToOne(() => Notification, ({ recipients }) => recipients)
  notification: Relation<Notification>;

  @PrimaryColumn('uuid')
  notificationId: string;

  @PrimaryColumn('text')
  userId: string;

  @Column('text')
  apiKey: string;

  @Column('text')
  organizationId: string;

  @Column('bigint')
  timestamp: number;
}
