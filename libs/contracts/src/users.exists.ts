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

  @Flag('Whether the organization exists. False when none was given.')
  organization: boolean;

  @Flag('Whether the document exists. False when none was given.')
  document: boolean;
}

export const Exists = query('users.exists.v1', ExistsRequest, ExistsResult, {
  callers: ['notifications'],
  purpose: 'Checks whether the API key of the call, an organization and a document exist in the users service.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap' },
    result: { apiKey: true, organization: true, document: true },
  },
});
