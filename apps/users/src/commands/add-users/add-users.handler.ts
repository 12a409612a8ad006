import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import type { Span } from '@opentelemetry/api';
import { ApiError } from '@app/contracts/error';
import { fingerprintOf, usedBefore } from '@app/contracts/idempotency';
import { AddUsers, AddUsersRequest, type AddUsersResult, type UserEntry } from '@app/contracts/users.add';
import { attempt } from '@app/postgres/attempt';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { IdempotencyKeysRepository, OPERATIONS } from '../../db/idempotency-keys.repository';
import { levelOf } from '../../db/level';
import type { NewMembers, NewUser, Refused } from '../../db/members.repository';
import { answerOf, outcomeOf, placesOf, type AddUsersOutcome, type KeptOutcome } from './add-users.answer';
import { MembersWriter } from './members-writer';
import { sortEntries } from './user-entries';

/** Adds users to an organization, a folder or a document. */
@Controller()
export class AddUsersHandler {
  constructor(
    private readonly writer: MembersWriter,
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
      deadline,
      ...(idempotencyKey !== undefined && { idempotency: keptWith(idempotencyKey, request, accepted, refused) }),
    };
    const outcome = await attempt(deadline, 'The users could not be stored in time; nothing was changed.', () =>
      this.tryOnce(members, request.users, refused, context.span),
    );
    this.outbox.wake();
    return answerOf(request.users, outcome);
  }

  private async tryOnce(
    members: NewMembers,
    entries: readonly UserEntry[],
    refused: Refused[],
    span?: Span,
  ): Promise<AddUsersOutcome | undefined> {
    const { apiKey, idempotency } = members;
    const written = await this.writer.add(members, span);
    if (written.outcome === 'stored') return { added: written.added, refused };
    if (written.outcome === 'unknownApiKey') throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
    const earlier = idempotency && (await this.idempotencyKeys.find(apiKey, OPERATIONS.add, idempotency.key));
    if (!earlier) return undefined;
    if (earlier.fingerprint.equals(idempotency.fingerprint)) return outcomeOf(entries, earlier.answer as KeptOutcome);
    throw usedBefore();
  }
}

/** The part of the answer to the first call that is stored with the key. */
function keptWith(
  key: string,
  request: AddUsersRequest,
  accepted: readonly NewUser[],
  refused: readonly Refused[],
): NonNullable<NewMembers['idempotency']> {
  const places = placesOf(request.users);
  return {
    key,
    fingerprint: fingerprintOf(request),
    places: accepted.map(({ userId }) => places.of(userId)),
    refused: refused.map(([userId, reason]) => [places.of(userId), reason]),
  };
}
