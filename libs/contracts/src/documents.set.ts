import { ACCESS_TYPES, type AccessType } from './access';
import { Described, Identifier, OneOf } from './fields';
import { command } from './message';

export class SetDocumentRequest {
  @Identifier('Organization of the document; created when it does not exist.')
  organizationId: string;

  @Identifier('The document; created when it does not exist.')
  documentId: string;

  @Identifier('The folder that it is in; created when it does not exist. Absent: in none.', { optional: true })
  folderId?: string;

  @OneOf('Who may open it beside its own users and those of its folder. Absent: organizationPrivate.', ACCESS_TYPES, {
    optional: true,
  })
  access?: AccessType;
}

export class SetDocumentResult {
  @Described({ type: 'integer', minimum: 1, description: 'Version of the document: grows with every change.' })
  version: number;

  @Described({ type: 'boolean', description: 'Whether this call has changed anything.' })
  changed: boolean;
}

export const SetDocument = command('documents.set.v1', SetDocumentRequest, SetDocumentResult, {
  service: 'users',
  open: true,
  purpose:
    'Says where a document is and who may open it. Sets both: what is absent has its default afterwards, whatever was there before.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', folderId: 'plans', access: 'restricted' },
    result: { version: 18, changed: true },
  },
});
