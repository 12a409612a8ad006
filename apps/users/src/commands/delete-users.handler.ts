import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { identifierProblem } from '@app/contracts/fields';
import { fingerprintOf, usedBefore } from '@app/contracts/idempotency';
import { DeleteUsers, DeleteUsersRequest, type DeletedUser, type DeleteUsersResult } from '@app/contracts/users.delete';
import { attempt } from '@app/postgres/attempt';
import { OutboxRelay } from '@app/postgres/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { IdempotencyKeysRepository, OPERATIONS } from '../db/idempotency-keys.repository';
import { levelOf } from '../db/level';
import { MembersRepository, type EndedMembers } from '../db/members.repository';

/** Data from which, with the request, the answer is made. Stored with the key of the answer: a new field must be optional. */
interface DeleteUsersOutcome {
  /** Ids of users who were at that level before. */
  removed: string[];
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
    const idempotency = { ...keyOf(context), fingerprint: fingerprintOf(request) };
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
    if (earlier.fingerprint.equals(fingerprint)) return earlier.answer as DeleteUsersOutcome;
    throw usedBefore();
  }
}

/** Without an Idempotency-Key the message is its own: a redelivery must not remove users who were added meanwhile. */
function keyOf({ idempotencyKey, messageId }: DeliveryContext): Pick<EndedMembers['idempotency'], 'operation' | 'key'> {
  if (idempotencyKey !== undefined) return { operation: OPERATIONS.delete, key: idempotencyKey };
  if (messageId === undefined)
    throw new ApiError('INVALID_ARGUMENT', 'message_id is required in a message without x-idempotency-key.');
  const problem = identifierProblem(messageId);
  if (problem) throw new ApiError('INVALID_ARGUMENT', `message_id${problem}`);
  return { operation: OPERATIONS.deleteMessage, key: messageId };
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
