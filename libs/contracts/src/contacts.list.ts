import { Described, Identifier, LIMITS, NestedList, WholeNumber } from './fields';
import { query } from './message';

export class ListContactsRequest {
  @Identifier('The organization.')
  organizationId: string;

  @Identifier('Reads the contact list of this document instead of that of the organization.', { optional: true })
  documentId?: string;

  @Identifier('`next` of the previous page: only users after this one.', { optional: true })
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

  @Described({ type: 'string', description: 'Initial; absent when neither an initial nor a name was sent.' }, { optional: true })
  initial?: string;
}

export class ListContactsResult {
  @NestedList(
    () => Contact,
    'Users in the order of their ids, byte by byte. It may be empty and have `next`, when very many have left.',
  )
  users: Contact[];

  @Identifier('Present when there may be more.', { optional: true })
  next?: string;
}

export const ListContacts = query('contacts.list.v1', ListContactsRequest, ListContactsResult, {
  service: 'users',
  open: true,
  purpose:
    'Reads a contact list in pages. The list of an organization has the users who were added to the organization. The list of a document has the users who were added to the document. Users who were added only to a folder are in neither list.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', pageSize: 50 },
    result: { users: [{ userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', initial: 'A' }], next: 'ada' },
  },
});
