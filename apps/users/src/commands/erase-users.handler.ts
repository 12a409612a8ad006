import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { fingerprintOf, usedBefore } from '@app/contracts/idempotency';
import { EraseUsers, EraseUsersRequest, TOO_MANY_PAIRS, type EraseUsersResult } from '@app/contracts/users.erase';
import { attempt } from '@app/postgres/attempt';
import { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { ErasuresRepository, type NewErasure } from '../db/erasures.repository';
import { IdempotencyKeysRepository, OPERATIONS } from '../db/idempotency-keys.repository';
import { answerKeyOf } from './answer-key';

/** Begins to erase the data of users. */
@Controller()
export class EraseUsersHandler {
  constructor(
    private readonly erasures: ErasuresRepository,
    private readonly idempotencyKeys: IdempotencyKeysRepository,
    private readonly outbox: OutboxRelay,
    private readonly loop: ErasureLoop,
  ) {}

  @MessagePattern(EraseUsers.pattern)
  async eraseUsers(@Payload() request: EraseUsersRequest, @Ctx() context: DeliveryContext): Promise<EraseUsersResult> {
    this.outbox.requireRoom();
    const { apiKey, deadline } = context;
    const erasure = {
      apiKey,
      userIds: [...new Set(request.userIds)],
      ...(request.organizationIds && { organizationIds: [...new Set(request.organizationIds)] }),
      deadline,
      idempotency: {
        // A redelivery must not erase users who were added meanwhile.
        ...answerKeyOf(context, OPERATIONS.erase, OPERATIONS.eraseMessage),
        fingerprint: fingerprintOf(request),
      },
    };
    // Each is looked for in each organization, also by a call that is refused.
    context.rows = erasure.userIds.length * (request.organizationIds?.length ?? 1);
    const hidden = await attempt(deadline, 'The erasure could not begin in time; nothing was changed.', () =>
      this.tryOnce(erasure),
    );
    context.rows = Math.max(hidden, context.rows);
    this.loop.wake();
    return { status: 'success', message: 'Data deletion process has been initiated.', data: {} };
  }

  /** @returns the number of rows that it has hidden */
  private async tryOnce(erasure: NewErasure): Promise<number | undefined> {
    const { operation, key, fingerprint } = erasure.idempotency;
    const begun = await this.erasures.begin(erasure);
    if (begun.outcome === 'begun') return begun.pairs;
    if (begun.outcome === 'unknownApiKey') throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
    if (begun.outcome === 'tooMany') throw new ApiError('INVALID_ARGUMENT', TOO_MANY_PAIRS);
    const earlier = await this.idempotencyKeys.find(erasure.apiKey, operation, key);
    if (!earlier) return undefined;
    if (earlier.fingerprint.equals(fingerprint)) return 0;
    throw usedBefore();
  }
}
