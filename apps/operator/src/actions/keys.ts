import { ANYBODY, type ApiKeysRepository, type ListedKey } from '@app/api-keys/api-keys.repository';
import { newApiKey, newToken } from '@app/api-keys/credentials';
import { identifierProblem, LIMITS, textProblem } from '@app/contracts/fields';
import { counted } from '@app/runtime/counted';
import { milliseconds } from '@app/runtime/settings/duration';
import { Refusal } from '../admission/refusal';
import type { AuditedForm } from './audited';

/** A new token, which nothing can show again. */
export interface Secret {
  key: string;
  token: string;
  tokenId: string;
  expiresAt?: Date;
}

/** Keys on one page. */
export const MOST_KEYS = 200;
const LONGEST_MS = 100 * 365 * 86_400_000;
const nameProblem = textProblem(LIMITS.nameLength, { singleLine: true });

/** Changes of API keys, by the statements of `npm run keys`, each with an audit line. */
export class Keys {
  constructor(private readonly keys: ApiKeysRepository) {}

  /** The oldest keys that have this text in their key or name. */
  list = (text: string): Promise<ListedKey[]> => this.keys.list(text, MOST_KEYS);

  /** @throws Refusal 404 */
  async find(key: string): Promise<ListedKey> {
    // The key itself comes before others that have it as a part.
    return known((await this.keys.list(key, 1)).find((one) => one.key === key));
  }

  async create(form: AuditedForm, name: string, expiresIn: string): Promise<Secret> {
    const problem = nameProblem(name);
    if (problem) throw new Refusal(400, `The name${problem}.`);
    const key = newApiKey();
    const { secret, token } = newToken(expiry(expiresIn));
    return form.run(key, `named "${name}", ${lifeOf(token.expiresAt)}`, async () => {
      await this.keys.create(key, name, token);
      return { outcome: `created with token ${token.id}`, result: secretOf(key, secret, token) };
    });
  }

  async rotate(form: AuditedForm, key: string, grace: string, expiresIn: string): Promise<Secret> {
    const graceSeconds = duration('The grace', grace, 0) / 1000;
    const { secret, token } = newToken(expiry(expiresIn));
    return form.run(key, `earlier tokens end after ${grace}, ${lifeOf(token.expiresAt)}`, async () => {
      known(await this.keys.rotate(key, token, graceSeconds));
      return { outcome: `has token ${token.id}`, result: secretOf(key, secret, token) };
    });
  }

  setDisabled(form: AuditedForm, key: string, disabled: boolean): Promise<void> {
    return form.run(key, '', async () => {
      known(await this.keys.setDisabled(key, disabled));
      return { outcome: disabled ? 'disabled' : 'enabled', result: undefined };
    });
  }

  /** @param tokenId only this token; empty for all tokens of the key */
  revoke(form: AuditedForm, key: string, tokenId: string): Promise<void> {
    return form.run(key, tokenId === '' ? 'all tokens' : `token ${tokenId}`, async () => {
      if (tokenId === '')
        return { outcome: `revoked ${counted(known(await this.keys.revokeAll(key)).length, 'token')}`, result: undefined };
      // Else the line would name another key than that of the token.
      known((await this.find(key)).tokens.find(({ id }) => id === tokenId));
      known(await this.keys.revokeToken(tokenId));
      return { outcome: 'revoked', result: undefined };
    });
  }

  grant(form: AuditedForm, key: string, publisher: string): Promise<void> {
    const problem = publisher !== ANYBODY && identifierProblem(publisher);
    if (problem) throw new Refusal(400, `The broker account${problem}.`);
    return form.run(key, `to the broker account "${publisher}"`, async () => {
      known(await this.keys.grant(key, publisher));
      return { outcome: 'granted', result: undefined };
    });
  }

  withdraw(form: AuditedForm, key: string, publisher: string): Promise<void> {
    return form.run(key, `from the broker account "${publisher}"`, async () => {
      known(await this.keys.withdraw(key, publisher));
      return { outcome: 'withdrawn', result: undefined };
    });
  }
}

/** @throws Refusal 404 */
function known<T>(found: T | false | undefined): T {
  if (found === false || found === undefined) throw new Refusal(404, 'There is no such key, token or grant any more.');
  return found;
}

const secretOf = (key: string, token: string, { id, expiresAt }: { id: string; expiresAt?: Date }): Secret => ({
  key,
  token,
  tokenId: id,
  ...(expiresAt && { expiresAt }),
});

const lifeOf = (expiresAt: Date | undefined): string => (expiresAt ? `expires ${expiresAt.toISOString()}` : 'does not expire');

function expiry(text: string): Date | undefined {
  return text === '' ? undefined : new Date(Date.now() + duration('The life', text, 1000));
}

/** @throws Refusal 400 */
function duration(what: string, text: string, min: number): number {
  const value = milliseconds(text, ['s', 'm', 'h', 'd']);
  if (value >= min && value <= LONGEST_MS) return value;
  throw new Refusal(400, `${what} must be a number with s, m, h or d, such as 90d.`);
}
