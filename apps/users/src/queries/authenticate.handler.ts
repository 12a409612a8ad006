import { randomBytes, timingSafeEqual } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { Authenticate, AuthenticateRequest, type AuthenticateResult } from '@app/contracts/users.authenticate';
import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';

/** Compared when a key is unknown or has no live token, so that this takes as long as for a wrong token. */
const NOBODYS_HASH = randomBytes(32);

/** Checks an API key and the hash of a token. A refusal gives no reason. */
@Controller()
export class AuthenticateHandler {
  constructor(private readonly apiKeys: ApiKeysRepository) {}

  @MessagePattern(Authenticate.pattern)
  async authenticate(@Payload() { apiKey, tokenHash }: AuthenticateRequest): Promise<AuthenticateResult> {
    const found = await this.apiKeys.findLiveTokens(apiKey);
    const matches = includes(found?.hashes ?? [], Buffer.from(tokenHash, 'hex'));
    if (!found || !matches) return { verdict: 'refused' };
    return { verdict: found.disabled ? 'disabled' : 'accepted' };
  }
}

/** Compares with every hash even after a match, so that the time does not show which one matched. */
function includes(hashes: readonly Buffer[], sought: Buffer): boolean {
  if (hashes.length === 0) timingSafeEqual(NOBODYS_HASH, sought);
  return hashes.filter((hash) => timingSafeEqual(hash, sought)).length > 0;
}
