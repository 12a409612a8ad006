import { Module, type DynamicModule } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { AddNotificationHandler } from './commands/add-notification.handler';
import { DeleteNotificationsHandler } from './commands/delete-notifications.handler';
import { UpdateNotificationsHandler } from './commands/update-notifications.handler';
import { DeleteNotificationsRepository } from './db/delete-notifications.repository';
import { ErasuresRepository } from './db/erasures.repository';
import { InboxRepository } from './db/inbox.repository';
import { InsertNotificationsRepository } from './db/insert-notifications.repository';
import { MembersRepository } from './db/members.repository';
import { OrganizationsRepository } from './db/organizations.repository';
import { PagesRepository } from './db/pages.repository';
import { ReadingsRepository } from './db/readings.repository';
import { CopyDocumentOnDocumentChanged } from './events/copy-document-on-document-changed';
import { CopyMembersOnUserAdded } from './events/copy-members-on-user-added';
import { CopyMembersOnUserRemoved } from './events/copy-members-on-user-removed';
import { EraseOnUserErased } from './events/erase-on-user-erased';
import { Existence } from './users-service/existence';
import { Members } from './users-service/members';
import { GetInboxHandler } from './queries/get-inbox.handler';
import { GetNotificationsHandler } from './queries/get-notifications.handler';
import { NotificationWriter } from './writer/notification-writer';

@Module({})
export class NotificationsModule {
  static with(dataSource: DataSource, client: RabbitClient, outbox: OutboxRelay, erasures: ErasureLoop): DynamicModule {
    return {
      module: NotificationsModule,
      controllers: [
        AddNotificationHandler,
        DeleteNotificationsHandler,
        UpdateNotificationsHandler,
        GetNotificationsHandler,
        GetInboxHandler,
        CopyMembersOnUserAdded,
        CopyMembersOnUserRemoved,
        EraseOnUserErased,
        CopyDocumentOnDocumentChanged,
      ],
      providers: [
        { provide: DataSource, useValue: dataSource },
        { provide: RabbitClient, useValue: client },
        { provide: OutboxRelay, useValue: outbox },
        { provide: ErasureLoop, useValue: erasures },
        Existence,
        Members,
        MembersRepository,
        NotificationWriter,
        InsertNotificationsRepository,
        DeleteNotificationsRepository,
        ErasuresRepository,
        OrganizationsRepository,
        PagesRepository,
        InboxRepository,
        ReadingsRepository,
      ],
    };
  }
}
