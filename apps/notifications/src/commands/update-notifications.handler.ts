import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { identifierProblem } from '@app/contracts/fields';
import {
  UpdateNotifications,
  UpdateNotificationsRequest,
  type UpdateNotificationsResult,
  type UpdatedNotification,
} from '@app/contracts/notifications.update';
import { attempt } from '@app/postgres/attempt';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { ReadingsRepository } from '../db/readings.repository';
import { Members } from '../users-service/members';
import { Existence } from '../users-service/existence';

const ANSWER = { status: 'success', message: 'Notification(s) updated successfully.' } as const;
const UPDATED = { success: true, message: 'Notification updated.' };
/** To look into so many documents takes as long as to change a row. */
const DOCUMENTS_LIKE_A_ROW = 8;
const FAILED = { success: false, message: 'Failed to update notification.' };

@Controller()
export class UpdateNotificationsHandler {
  constructor(
    private readonly existence: Existence,
    private readonly members: Members,
    private readonly readings: ReadingsRepository,
    private readonly outbox: OutboxRelay,
  ) {}

  @MessagePattern(UpdateNotifications.pattern)
  async update(
    @Payload() request: UpdateNotificationsRequest,
    @Ctx() context: DeliveryContext,
  ): Promise<UpdateNotificationsResult> {
    const { organizationId, notifications, userId, readUpTo } = request;
    await this.existence.requireTenant(context);
    this.outbox.requireRoom();
    if (notifications) return this.updateEach(request, notifications, context);
    if (userId === undefined || readUpTo === undefined) throw new Error('The contract lets no such request through.');
    // A notification that is too young for the mark is marked one by one, and so has to be known.
    await this.members.requireComplete(organizationId, userId, context).finally(() => countLikeDocuments(context));
    const { apiKey, deadline } = context;
    // No publisher is refused for an id that cannot be kept: then a redelivery is a call of its own.
    const messageId = identifierProblem(context.messageId) ? undefined : context.messageId;
    const done = await this.repeated(context, () =>
      this.readings.updateUpTo({ apiKey, organizationId, deadline, userId, readUpTo, messageId }),
    );
    context.rows = (context.rows ?? 0) + done.rows + Math.ceil(done.documents / DOCUMENTS_LIKE_A_ROW);
    return { ...ANSWER, data: {}, readUpTo: done.readUpTo };
  }

  private async updateEach(
    { organizationId, documentId, locationId }: UpdateNotificationsRequest,
    notifications: readonly UpdatedNotification[],
    context: DeliveryContext,
  ): Promise<UpdateNotificationsResult> {
    const { apiKey, deadline } = context;
    const ids = notifications.map(({ id }) => id);
    const pairs = notifications.flatMap(pairsOf);
    const { updated } = await this.repeated(context, () =>
      this.readings.updateEach({ apiKey, organizationId, deadline, ids, documentId, locationId, pairs }),
    );
    context.rows = pairs.length;
    const done = new Set(updated);
    // fromEntries() creates own properties, even for an id like `__proto__`.
    return { ...ANSWER, data: Object.fromEntries(ids.map((id) => [id, done.has(id) ? UPDATED : FAILED])) };
  }

  /** Repeats a statement that has lost a race, and publishes its event. */
  private repeated<Done extends { event?: OutboxEvent }>(
    { deadline }: DeliveryContext,
    run: () => Promise<Done | undefined>,
  ): Promise<Done> {
    return attempt(deadline, 'The notifications could not be updated in time; nothing was updated.', async () => {
      const since = performance.now();
      const done = await run();
      if (done?.event) this.outbox.add([done.event], since);
      return done;
    });
  }
}

/** Rows that a question has looked at count like documents, also when the command fails: other marks of the tenant are expected to cost as much. */
function countLikeDocuments(context: DeliveryContext): void {
  for (const field of ['rows', 'oneTimeRows'] as const) {
    const rows = context[field];
    if (rows !== undefined) context[field] = Math.ceil(rows / DOCUMENTS_LIKE_A_ROW);
  }
}

function pairsOf({ id, readByUserIds = [], unreadByUserIds = [] }: UpdatedNotification) {
  const pair = (read: boolean) => (userId: string) => ({ id, userId, read });
  return [...[...new Set(readByUserIds)].map(pair(true)), ...[...new Set(unreadByUserIds)].map(pair(false))];
}
