import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { fingerprintOf, usedBefore } from '@app/contracts/idempotency';
import { DeleteUsers, DeleteUsersRequest, type DeletedUser, type DeleteUsersResult } from '@app/contracts/users.delete';
import { attempt } from '@app/postgres/attempt';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { IdempotencyKeysRepository, OPERATIONS } from '../db/idempotency-keys.repository';
import { levelOf } from '../db/level';
import { MembersRepository, type EndedMembers } from '../db/members.repository';
import { answerKeyOf } from './answer-key';
import { Places } from './places';

/** Data from which, with the request, the answer is made. */
interface DeleteUsersOutcome {
  /** Ids of users who were at that level before. */
  removed: string[];
}

/** The same as it is stored with the key of the answer: users by their places. A new field must be optional. */
interface KeptOutcome {
  removed: (number | string)[];
}

/** Removes users from an organization, a folder or a document. */
@Controller()
export class DeleteUsersHandler {
  constructor(
    private readonly members: MembersRepository,
    private readonly idempotencyKeys: IdempotencyKeysRepository,
    private readonly outbox: OutboxRelay,
  ) {}

  @MessagePattern(DeleteUsers.pattern)
  async deleteUsers(@Payload() request: DeleteUsersRequest, @Ctx() context: DeliveryContext): Promise<DeleteUsersResult> {
    this.outbox.requireRoom();
    const { apiKey, deadline } = context;
    const userIds = [...new Set(request.userIds)];
    const { organizationId } = request;
    const idempotency = {
      ...answerKeyOf(context, OPERATIONS.delete, OPERATIONS.deleteMessage),
      fingerprint: fingerprintOf(request),
    };
    const ended = { apiKey, organizationId, level: levelOf(request), userIds, deadline, idempotency };
    const outcome = await attempt(deadline, 'The users could not be removed in time; nothing was changed.', () =>
      this.tryOnce(ended),
    );
    this.outbox.wake();
    return answerOf(userIds, outcome);
  }

  private async tryOnce(ended: EndedMembers): Promise<DeleteUsersOutcome | undefined> {
    const { operation, key, fingerprint } = ended.idempotency;
    const written = await this.members.remove(ended);
    if (written.outcome === 'removed') return { removed: written.removed };
    if (written.outcome === 'unknownApiKey') throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
    const earlier = await this.idempotencyKeys.find(ended.apiKey, operation, key);
    if (!earlier) return undefined;
    if (!earlier.fingerprint.equals(fingerprint)) throw usedBefore();
    const places = new Places(ended.userIds);
    return { removed: (earlier.answer as KeptOutcome).removed.map((user) => places.userId(user)) };
  }
}

/** The answer, keyed by userId. */
function answerOf(userIds: readonly string[], { removed }: DeleteUsersOutcome): DeleteUsersResult {
  const wasThere = new Set(removed);
  // Without a prototype, because `__proto__` is a valid userId.
  const data = Object.create(null) as Record<string, DeletedUser>;
  for (const userId of userIds) {
    const success = wasThere.has(userId);
    data[userId] = { success, message: success ? 'User removed.' : 'User does not exist.' };
  }
  return { status: 'success', message: 'User(s) deleted successfully.', data };
}
