import { ACCESS_TYPES, type AccessType } from './access';
import { Described, Identifier, Int64, Nested, OneOf, Success } from './fields';
import { command, type Naming, type Refusal, type Sent } from './message';
import { refuseMisspelt } from './misspelt';

export class SetDocumentRequest {
  @Identifier('Organization of the document; created when it does not exist.')
  organizationId: string;

  @Identifier('The document; created when it does not exist.')
  documentId: string;

  @Identifier('The folder of the document; created when it does not exist. Absent: no folder.', { optional: true })
  folderId?: string;

  @OneOf(
    'Access type: users who may open it in addition to its own users and the users of its folder. Absent: organizationPrivate.',
    ACCESS_TYPES,
    {
      optional: true,
    },
  )
  access?: AccessType;

  static refuse(_: SetDocumentRequest, sent: Sent, named: Naming): Refusal | undefined {
    return refuseMisspelt(SetDocumentRequest, sent, named);
  }
}

/** The document as it is now. */
export class StoredDocument {
  @Described({ type: 'boolean', description: 'Always true.' })
  success: boolean;

  @Described({ type: 'string', description: '`Document set successfully.`' })
  message: string;

  @OneOf('Access type of the document.', ACCESS_TYPES)
  access: AccessType;

  @Identifier('The folder of the document; absent: no folder.', { optional: true })
  folderId?: string;

  @Int64('Version of the document. It grows with every change.', { minimum: 1 })
  version: number;
}

export class SetDocumentResult {
  // Optional, as all that was added later: services of an earlier version answer without it.
  @Success(undefined, { optional: true })
  status?: 'success';

  @Described({ type: 'string', description: '`Document set successfully.`' }, { optional: true })
  message?: string;

  @Nested(() => StoredDocument, 'The document as it is now.', { optional: true })
  data?: StoredDocument;

  @Int64('Version of the document. It grows with every change.', { minimum: 1 })
  version: number;

  @Described({ type: 'boolean', description: 'Whether this call has changed anything.' })
  changed: boolean;
}

const SET = 'Document set successfully.';

const RESULT: SetDocumentResult = {
  status: 'success',
  message: SET,
  data: { success: true, message: SET, access: 'restricted', folderId: 'plans', version: 18 },
  version: 18,
  changed: true,
};

const RESTRICTED: SetDocumentRequest = { organizationId: 'acme', documentId: 'roadmap', folderId: 'plans', access: 'restricted' };

export const SetDocument = command('documents.set.v1', SetDocumentRequest, SetDocumentResult, {
  service: 'users',
  open: true,
  purpose: 'Sets the folder and the access type of a document. It always sets both: an absent field gets its default.',
  example: {
    request: RESTRICTED,
    result: RESULT,
  },
  http: {
    path: '/v1/documents/set',
    summary: 'Set a document',
    effect: 'Sets the folder and the access of a document: `public`, `organizationPrivate` or `restricted`.',
    goodToKnow: 'It sets both. A repetition changes nothing.',
    description: `Sets the folder and the access type of a document, always both: an absent field gets its default. A missing organization, folder or
document is created. The access type decides who may open the document beside the users who were added to it and to its folder:

- \`public\`: everybody;
- \`organizationPrivate\`: the users of the organization;
- \`restricted\`: nobody else.

A repetition changes nothing. \`notifications/get\` follows within a second.`,
    examples: {
      request: {
        restricted: { summary: 'For its own users and those of its folder', value: RESTRICTED },
        open: { summary: 'For the organization, in no folder', value: { organizationId: 'acme', documentId: 'plain' } },
      },
      result: { changed: { summary: 'The document has changed', value: RESULT } },
    },
  },
});
