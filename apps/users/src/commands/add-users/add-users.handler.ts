import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { fingerprintOf, usedBefore } from '@app/contracts/idempotency';
import { AddUsers, AddUsersRequest, type AddUsersResult } from '@app/contracts/users.add';
import { attempt } from '@app/postgres/attempt';
import { OutboxRelay } from '@app/postgres/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { IdempotencyKeysRepository, OPERATIONS } from '../../db/idempotency-keys.repository';
import { levelOf } from '../../db/level';
import { MembersRepository, type NewMembers } from '../../db/members.repository';
import { answerOf, type AddUsersOutcome } from './add-users.answer';
import { sortEntries } from './user-entries';

/** Adds users to an organization, a folder or a document. */
@Controller()
export class AddUsersHandler {
  constructor(
    private readonly members: MembersRepository,
    private readonly idempotencyKeys: IdempotencyKeysRepository,
    private readonly outbox: OutboxRelay,
  ) {}

  @MessagePattern(AddUsers.pattern)
  async addUsers(@Payload() request: AddUsersRequest, @Ctx() context: DeliveryContext): Promise<AddUsersResult> {
    this.outbox.requireRoom();
    const { apiKey, deadline, idempotencyKey } = context;
    const { accepted, refused } = sortEntries(request.users);
    const members = {
      apiKey,
      organizationId: request.organizationId,
      level: levelOf(request),
      users: accepted,
      refused,
      deadline,
      ...(idempotencyKey !== undefined && { idempotency: { key: idempotencyKey, fingerprint: fingerprintOf(request) } }),
    };
    const outcome = await attempt(deadline, 'The users could not be stored in time; nothing was changed.', () =>
      this.tryOnce(members),
    );
    this.outbox.wake();
    return answerOf(request.users, outcome);
  }

  private async tryOnce(members: NewMembers): Promise<AddUsersOutcome | undefined> {
    const { apiKey, refused, idempotency } = members;
    const written = await this.members.add(members);
    if (written.outcome === 'stored') return { added: written.added, refused };
    if (written.outcome === 'unknownApiKey') throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
    const earlier = idempotency && (await this.idempotencyKeys.find(apiKey, OPERATIONS.add, idempotency.key));
    if (!earlier) return undefined;
    if (earlier.fingerprint.equals(idempotency.fingerprint)) return earlier.answer as AddUsersOutcome;
    throw usedBefore();
  }
}
