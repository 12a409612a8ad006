import { Module, type DynamicModule } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { AddUsersHandler } from './commands/add-users/add-users.handler';
import { MembersWriter } from './commands/add-users/members-writer';
import { DeleteUsersHandler } from './commands/delete-users.handler';
import { EraseUsersHandler } from './commands/erase-users.handler';
import { SetDocumentHandler } from './commands/set-document.handler';
import { AccessRepository } from './db/access.repository';
import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';
import { DocumentsRepository } from './db/documents.repository';
import { ErasuresRepository } from './db/erasures.repository';
import { IdempotencyKeysRepository } from './db/idempotency-keys.repository';
import { MembersRepository } from './db/members.repository';
import { OrganizationsRepository } from './db/organizations.repository';
import { AuthenticateHandler } from './queries/authenticate.handler';
import { AuthorizeHandler } from './queries/authorize.handler';
import { CheckAccessHandler } from './queries/check-access.handler';
import { ExistsHandler } from './queries/exists.handler';
import { GetUsersHandler } from './queries/get-users.handler';
import { ListContactsHandler } from './queries/list-contacts.handler';
import { ListMembershipsHandler } from './queries/list-memberships.handler';

@Module({})
export class UsersModule {
  /** The service on a data source. The creator of the data source must close it. */
  static with(dataSource: DataSource, outbox: OutboxRelay, erasures: ErasureLoop): DynamicModule {
    return {
      module: UsersModule,
      controllers: [
        AddUsersHandler,
        DeleteUsersHandler,
        EraseUsersHandler,
        SetDocumentHandler,
        AuthenticateHandler,
        AuthorizeHandler,
        ExistsHandler,
        GetUsersHandler,
        CheckAccessHandler,
        ListContactsHandler,
        ListMembershipsHandler,
      ],
      providers: [
        { provide: DataSource, useValue: dataSource },
        { provide: OutboxRelay, useValue: outbox },
        { provide: ErasureLoop, useValue: erasures },
        AccessRepository,
        ApiKeysRepository,
        DocumentsRepository,
        ErasuresRepository,
        IdempotencyKeysRepository,
        MembersRepository,
        MembersWriter,
        OrganizationsRepository,
      ],
    };
  }
}
