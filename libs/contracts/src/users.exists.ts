import { Flag, Identifier } from './fields';
import { query } from './message';

export class ExistsRequest {
  @Identifier('Organization to look for.', { optional: true })
  organizationId?: string;

  @Identifier('Document to look for in that organization.', { optional: true })
  documentId?: string;
}

export class ExistsResult {
  @Flag('Whether the API key of the call is known.')
  apiKey: boolean;

  @Flag('Whether users/add has named the organization. False when none was asked for.')
  organization: boolean;

  @Flag('Whether users/add has named the document. False when none was asked for.')
  document: boolean;
}

export const Exists = query('users.exists.v1', ExistsRequest, ExistsResult, {
  callers: ['notifications'],
  purpose: 'Asks what the users service knows to exist for the API key of the call.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap' },
    result: { apiKey: true, organization: true, document: true },
  },
});
