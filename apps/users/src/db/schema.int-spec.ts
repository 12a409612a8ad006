import type { DataSource } from 'typeorm';
import { testMigrations } from '@app/testing/database/schema';
import { connectTestDatabase } from '../../test/users';
import { ApiKeyEntity } from './entities/api-key.entity';
import { DocumentMemberEntity } from './entities/document-member.entity';
import { DocumentEntity } from './entities/document.entity';
import { ErasureEntity } from './entities/erasure.entity';
import { FolderMemberEntity } from './entities/folder-member.entity';
import { FolderEntity } from './entities/folder.entity';
import { IdempotencyKeyEntity } from './entities/idempotency-key.entity';
import { OrganizationMemberEntity } from './entities/organization-member.entity';
import { OrganizationEntity } from './entities/organization.entity';
import { OutboxEntity } from './entities/outbox.entity';
import { PublisherGrantEntity } from './entities/publisher-grant.entity';
import { TokenEntity } from './entities/token.entity';
import { UserEntity } from './entities/user.entity';
import { VersionTimeEntity } from './entities/version-time.entity';

let dataSource: DataSource;
let close: (() => Promise<void>) | undefined;

beforeAll(async () => {
  ({ dataSource, close } = await connectTestDatabase());
});

afterAll(() => close?.());

describe('schema', () => {
  it('compares text identifiers byte by byte', async () => {
    const columns = await dataSource.query<{ name: string }[]>(
      `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
       WHERE table_schema = 'users' AND table_name <> 'migrations' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`,
    );
    // Only texts for people, which are never keys, have another collation.
    expect(columns.map(({ name }) => name).sort()).toEqual(['api_keys.name', 'users.email', 'users.initial', 'users.name']);
  });

  testMigrations(
    () => dataSource,
    [
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
      ErasureEntity,
      VersionTimeEntity,
    ],
  );
});
