import { Controller } from '@nestjs/common';
import { AddNotification } from '@app/contracts/notifications.add';
import { DeleteNotifications } from '@app/contracts/notifications.delete';
import { GetNotifications } from '@app/contracts/notifications.get';
import { GetInbox } from '@app/contracts/notifications.inbox';
import { UpdateNotifications } from '@app/contracts/notifications.update';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { answer, Called, Operation, type Call } from './operation';

@Controller()
export class NotificationsController {
  constructor(private readonly rabbit: RabbitClient) {}

  /** Without a notificationId the message id, which the client makes up, becomes the id of the notification. */
  @Operation(AddNotification)
  add(@Called(AddNotification) call: Call<typeof AddNotification>) {
    return answer(this.rabbit, call);
  }

  @Operation(GetNotifications)
  get(@Called(GetNotifications) call: Call<typeof GetNotifications>) {
    return answer(this.rabbit, call);
  }

  @Operation(DeleteNotifications)
  delete(@Called(DeleteNotifications) call: Call<typeof DeleteNotifications>) {
    return answer(this.rabbit, call);
  }

  @Operation(UpdateNotifications)
  update(@Called(UpdateNotifications) call: Call<typeof UpdateNotifications>) {
    return answer(this.rabbit, call);
  }

  @Operation(GetInbox)
  inbox(@Called(GetInbox) call: Call<typeof GetInbox>) {
    return answer(this.rabbit, call);
  }
}
