import { Described, Identifier, LIMITS, NestedList, WholeNumber } from './fields';
import { query } from './message';

export class ListContactsRequest {
  @Identifier('The organization.')
  organizationId: string;

  @Identifier('Its contact list instead of that of the organization.', { optional: true })
  documentId?: string;

  @Identifier('`next` of the page before: only users behind this one.', { optional: true })
  after?: string;

  @WholeNumber('Most users in a page. Default 1000.', 1, LIMITS.listLength, { optional: true })
  pageSize?: number;
}

export class Contact {
  @Identifier('Identifier of the user.')
  userId: string;

  @Described({ type: 'string', description: 'Display name; absent when none was sent.' }, { optional: true })
  name?: string;

  @Described({ type: 'string', description: 'E-mail address; absent when none was sent.' }, { optional: true })
  email?: string;

  @Described({ type: 'string', description: 'Initial; absent when there is neither one nor a name.' }, { optional: true })
  initial?: string;
}

export class ListContactsResult {
  @NestedList(() => Contact, 'Users in the order of their ids, byte by byte.')
  users: Contact[];

  @Identifier('Present when there are more.', { optional: true })
  next?: string;
}

export const ListContacts = query('contacts.list.v1', ListContactsRequest, ListContactsResult, {
  service: 'users',
  open: true,
  purpose:
    'Reads a contact list, a page at a time. In that of an organization appear those who were added to it, in that of a document those who were added to it: who was added to a folder appears in neither.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', pageSize: 50 },
    result: { users: [{ userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', initial: 'A' }], next: 'ada' },
  },
});
