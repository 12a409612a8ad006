import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { identifierProblem } from '@app/contracts/fields';
import {
  DeleteNotifications,
  DeleteNotificationsRequest,
  type DeleteNotificationsResult,
} from '@app/contracts/notifications.delete';
import { decodeMomentToken, encodeMomentToken } from '@app/contracts/page-token';
import { attempt } from '@app/postgres/attempt';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { DeleteNotificationsRepository, type Deleted } from '../db/delete-notifications.repository';
import { Existence } from '../users-service/existence';

const MESSAGE = 'Notification(s) deleted successfully.';
const DELETED = { success: true, message: 'Notification deleted.' };
const FAILED = { success: false, message: 'Failed to delete notification.' };

@Controller()
export class DeleteNotificationsHandler {
  constructor(
    private readonly existence: Existence,
    private readonly notifications: DeleteNotificationsRepository,
    private readonly outbox: OutboxRelay,
  ) {}

  @MessagePattern(DeleteNotifications.pattern)
  async delete(
    @Payload() request: DeleteNotificationsRequest,
    @Ctx() context: DeliveryContext,
  ): Promise<DeleteNotificationsResult> {
    await this.existence.requireTenant(context);
    const { deleted, left, next, rows } = await this.deleteOldest(request, context);
    context.rows = rows;
    const found = new Set([...deleted, ...left]);
    const missing = (request.notificationIds ?? []).filter((id) => !found.has(id));
    // fromEntries() creates own properties, even for an id like `__proto__`.
    const data = Object.fromEntries([
      ...deleted.map((id) => [id, DELETED] as const),
      ...missing.map((id) => [id, FAILED] as const),
    ]);
    return { status: 'success', message: MESSAGE, data, ...(next !== undefined && { pageToken: encodeMomentToken(next) }) };
  }

  private async deleteOldest(request: DeleteNotificationsRequest, context: DeliveryContext): Promise<Deleted> {
    const { organizationId, documentId, locationId, notificationIds: ids, pageSize: most, pageToken } = request;
    const { apiKey, messageId, deadline } = context;
    if (messageId === undefined) throw new ApiError('INVALID_ARGUMENT', 'message_id is required in a message that deletes.');
    const problem = identifierProblem(messageId);
    if (problem) throw new ApiError('INVALID_ARGUMENT', `message_id${problem}`);
    const moment = pageToken === undefined ? undefined : decodeMomentToken(pageToken);
    this.outbox.requireRoom();
    const deletion = { apiKey, organizationId, messageId, deadline, moment, documentId, locationId, ids, most };
    return attempt(deadline, 'The notifications could not be deleted in time; nothing was deleted.', async () => {
      const since = performance.now();
      const done = await this.notifications.delete(deletion);
      if (done?.event) this.outbox.add([done.event], since);
      return done;
    });
  }
}
