import { ACCESS_TYPES, type AccessType } from './access';
import { Described, Identifier, OneOf } from './fields';
import { command } from './message';

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
}

export class SetDocumentResult {
  @Described({ type: 'integer', minimum: 1, description: 'Version of the document. It grows with every change.' })
  version: number;

  @Described({ type: 'boolean', description: 'Whether this call has changed anything.' })
  changed: boolean;
}

export const SetDocument = command('documents.set.v1', SetDocumentRequest, SetDocumentResult, {
  service: 'users',
  open: true,
  purpose: 'Sets the folder and the access type of a document. It always sets both: an absent field gets its default.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', folderId: 'plans', access: 'restricted' },
    result: { version: 18, changed: true },
  },
});
