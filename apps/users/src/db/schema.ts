import { ApiKeyEntity } from './api-key.entity';
import { DocumentEntity } from './document.entity';
import { DocumentMemberEntity } from './document-member.entity';
import { FolderEntity } from './folder.entity';
import { FolderMemberEntity } from './folder-member.entity';
import { IdempotencyKeyEntity } from './idempotency-key.entity';
import { Users1795132800000 } from './migrations/1795132800000-users';
import { PublisherGrants1795219200000 } from './migrations/1795219200000-publisher-grants';
import { Access1795392000000 } from './migrations/1795392000000-access';
import { Memberships1795478400000 } from './migrations/1795478400000-memberships';
import { Outbox1795305600000 } from './migrations/1795305600000-outbox';
import { OrganizationEntity } from './organization.entity';
import { OrganizationMemberEntity } from './organization-member.entity';
import { OutboxEntity } from './outbox.entity';
import { PublisherGrantEntity } from './publisher-grant.entity';
import { TokenEntity } from './token.entity';
import { UserEntity } from './user.entity';

/** What every program on this service's database says of it. */
export const DATABASE = {
  schema: 'users',
  entities: [
    ApiKeyEntity,
    TokenEntity,
    PublisherGrantEntity,
    OrganizationEntity,
    FolderEntity,
    DocumentEntity,
    UserEntity,
    OrganizationMemberEntity,
    FolderMemberEntity,
    DocumentMemberEntity,
    IdempotencyKeyEntity,
    OutboxEntity,
  ],
  migrations: [
    Users1795132800000,
    PublisherGrants1795219200000,
    Outbox1795305600000,
    Access1795392000000,
    Memberships1795478400000,
  ],
};
