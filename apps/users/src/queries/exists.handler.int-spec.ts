import type { DataSource } from 'typeorm';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { connectTestDatabase } from '../../test/users';
import { OrganizationsRepository } from '../db/organizations.repository';
import { ExistsHandler } from './exists.handler';

let dataSource: DataSource;
let close: (() => Promise<void>) | undefined;
let handler: ExistsHandler;

beforeAll(async () => {
  ({ dataSource, close } = await connectTestDatabase());
  handler = new ExistsHandler(new OrganizationsRepository(dataSource));
  await dataSource.query(`
    WITH keys AS (INSERT INTO api_keys (key, name) VALUES ('one', ''), ('two', '')),
    o AS (INSERT INTO organizations (api_key, organization_id) VALUES ('one', 'o'), ('two', 'p') RETURNING id, organization_id)
    INSERT INTO documents (organization, document_id) SELECT id, 'd-of-' || organization_id FROM o`);
});

afterAll(() => close?.());

const exists = (apiKey: string, organizationId?: string, documentId?: string) =>
  handler.exists(
    { organizationId, documentId },
    new DeliveryContext({ apiKey, requestId: 'r', awaited: true, redelivered: false, attempt: 1, pattern: 'users.exists.v1' }),
  );

describe('users/exists', () => {
  it.each([
    ['a known key', ['one'], [true, false, false]],
    ['an unknown key', ['none', 'o', 'd-of-o'], [false, false, false]],
    ['an organization', ['one', 'o'], [true, true, false]],
    ['a document', ['one', 'o', 'd-of-o'], [true, true, true]],
    ['an unknown document', ['one', 'o', 'd-of-p'], [true, true, false]],
    ['an organization of another key', ['one', 'p', 'd-of-p'], [true, false, false]],
    ['a document without its organization', ['one', undefined, 'd-of-o'], [true, false, false]],
  ] as [string, [string, string?, string?], boolean[]][])('knows %s', async (_, asked, [apiKey, organization, document]) => {
    expect(await exists(...asked)).toEqual({ apiKey, organization, document });
  });
});
