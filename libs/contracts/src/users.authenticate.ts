import { Field, Identifier, OneOf } from './fields';
import { query } from './message';

const SHA256_HEX = /^[0-9a-f]{64}$/;

export class AuthenticateRequest {
  @Identifier('The API key of the caller.')
  apiKey: string;

  @Field((value) => (typeof value === 'string' && SHA256_HEX.test(value) ? undefined : ' must be a SHA-256 in lower-case hex'), {
    type: 'string',
    pattern: SHA256_HEX.source,
    description: 'SHA-256 of the token, so that the token itself never crosses the broker.',
  })
  tokenHash: string;
}

/** `accepted`; `disabled`: the token is right but the key is switched off; `refused`: anything else, without saying what. */
export const VERDICTS = ['accepted', 'disabled', 'refused'] as const;
export type Verdict = (typeof VERDICTS)[number];

export class AuthenticateResult {
  @OneOf('What the credentials are worth.', VERDICTS)
  verdict: Verdict;
}

export const Authenticate = query('users.authenticate.v1', AuthenticateRequest, AuthenticateResult, {
  callers: ['gateway'],
  tenantless: true,
  purpose: 'Asks what an API key and a token are worth. Needs no tenant: it is how a tenant is established.',
  example: {
    request: { apiKey: 'demo-key', tokenHash: '7c43ef5ae21d43ce2743f770c68e24def1a43ee2f416d2438410c8af7af2ff2c' },
    result: { verdict: 'accepted' },
  },
});
