import { Field, Identifier, OneOf } from './fields';
import { query } from './message';

const SHA256_HEX = /^[0-9a-f]{64}$/;

export class AuthenticateRequest {
  @Identifier('The API key of the caller.')
  apiKey: string;

  @Field((value) => (typeof value === 'string' && SHA256_HEX.test(value) ? undefined : ' must be a SHA-256 in lower-case hex'), {
    type: 'string',
    pattern: SHA256_HEX.source,
    description: 'SHA-256 of the token, so that the token itself is never sent over the broker.',
  })
  tokenHash: string;
}

/** `accepted`; `disabled`: the token is right but the key is disabled; `refused`: everything else, without a reason. */
export const VERDICTS = ['accepted', 'disabled', 'refused'] as const;
export type Verdict = (typeof VERDICTS)[number];

export class AuthenticateResult {
  @OneOf('Result of the check.', VERDICTS)
  verdict: Verdict;
}

export const Authenticate = query('users.authenticate.v1', AuthenticateRequest, AuthenticateResult, {
  callers: ['gateway'],
  tenantless: true,
  purpose: 'Checks an API key and the hash of a token. Needs no tenant, because it establishes the tenant.',
  example: {
    request: { apiKey: 'demo-key', tokenHash: '7c43ef5ae21d43ce2743f770c68e24def1a43ee2f416d2438410c8af7af2ff2c' },
    result: { verdict: 'accepted' },
  },
});
