import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { fingerprintOf, usedBefore } from '@app/contracts/idempotency';
import { AddUsers, AddUsersRequest, type AddUsersResult } from '@app/contracts/users.add';
import { isDatabaseAway, isTransient } from '@app/postgres/errors';
import { OutboxRelay } from '@app/postgres/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { IdempotencyKeysRepository } from '../../db/idempotency-keys.repository';
import { MembersRepository, type Level, type NewMembers } from '../../db/members.repository';
import { answerOf, type AddUsersOutcome } from './add-users.answer';
import { sortEntries } from './user-entries';

/** Most attempts of one call. Each further attempt follows a lost race, and the winner of the race has committed by then. */
const MAX_TRIES = 5;

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
    const outcome = await this.store({
      apiKey,
      organizationId: request.organizationId,
      level: levelOf(request),
      users: accepted,
      refused,
      deadline,
      ...(idempotencyKey !== undefined && { idempotency: { key: idempotencyKey, fingerprint: fingerprintOf(request) } }),
    });
    this.outbox.wake();
    return answerOf(request.users, outcome);
  }

  /** A failed attempt has changed nothing, so UNAVAILABLE is correct after the last one. */
  private async store(members: NewMembers): Promise<AddUsersOutcome> {
    for (let tries = 0; tries < MAX_TRIES && !isPast(members.deadline); tries++) {
      const outcome = await this.tryOnce(members).catch(unavailableWhenTransient);
      if (outcome) return outcome;
    }
    throw nothingStored();
  }

  private async tryOnce(members: NewMembers): Promise<AddUsersOutcome | undefined> {
    const { apiKey, refused, idempotency } = members;
    const written = await this.members.add(members);
    if (written.outcome === 'stored') return { added: written.added, refused };
    if (written.outcome === 'unknownApiKey') throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
    const earlier = idempotency && (await this.idempotencyKeys.find(apiKey, idempotency.key));
    if (!earlier) return undefined;
    if (earlier.fingerprint.equals(idempotency.fingerprint)) return earlier.answer as AddUsersOutcome;
    throw usedBefore();
  }
}

/** The narrowest given level counts: users added to a document are not added to its folder. */
function levelOf({ documentId, folderId }: AddUsersRequest): Level {
  if (documentId !== undefined) return { of: 'document', id: documentId };
  if (folderId !== undefined) return { of: 'folder', id: folderId };
  return { of: 'organization' };
}

const isPast = (deadline: number | undefined): boolean => deadline !== undefined && Date.now() > deadline;

const nothingStored = (options?: ErrorOptions) =>
  new ApiError('UNAVAILABLE', 'The users could not be stored in time; nothing was changed.', undefined, options);

function unavailableWhenTransient(error: unknown): never {
  // If the database is away, the outcome of the statement is unknown: pass the error on, and the message is redelivered.
  if (isDatabaseAway(error) || !isTransient(error)) throw error;
  throw nothingStored({ cause: error });
}
