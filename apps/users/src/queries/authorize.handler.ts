import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { Authorize, AuthorizeRequest, type AuthorizeResult } from '@app/contracts/users.authorize';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';

/** Checks whether a broker account may publish for the API key of the call. */
@Controller()
export class AuthorizeHandler {
  constructor(private readonly apiKeys: ApiKeysRepository) {}

  @MessagePattern(Authorize.pattern)
  async authorize(@Payload() { publisher }: AuthorizeRequest, @Ctx() { apiKey }: DeliveryContext): Promise<AuthorizeResult> {
    return { granted: await this.apiKeys.isGranted(publisher, apiKey) };
  }
}
