import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { LIMITS } from '@app/contracts/fields';
import { decodeUserToken, encodeUserToken } from '@app/contracts/page-token';
import { GetUsers, GetUsersRequest, type GetUsersResult, type UserItem } from '@app/contracts/users.get';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { AccessRepository, type StoredContact } from '../db/access.repository';
import { levelOf } from '../db/level';

/** Reads a page of the users of an organization, a folder or a document. */
@Controller()
export class GetUsersHandler {
  constructor(private readonly access: AccessRepository) {}

  @MessagePattern(GetUsers.pattern)
  async getUsers(@Payload() request: GetUsersRequest, @Ctx() context: DeliveryContext): Promise<GetUsersResult> {
    const { apiKey } = context;
    const { organizationId, userIds, pageToken, pageSize = LIMITS.listLength } = request;
    const after = pageToken === undefined ? undefined : decodeUserToken(pageToken);
    const { users, next, rows } = await this.access.contacts(
      { apiKey, organizationId, level: levelOf(request), userIds },
      { after, pageSize },
    );
    context.rows = rows;
    return {
      status: 'success',
      message: 'User(s) retrieved successfully.',
      data: users.map(toItem),
      ...(next !== undefined && { pageToken: encodeUserToken(next) }),
    };
  }
}

const toItem = ({ userId, name, email, initial }: StoredContact): UserItem => ({
  userId,
  name: name ?? '',
  email: email ?? '',
  initial: initial ?? '',
});
