// Publishes a command without waiting for its result: exit code 0 means that the broker has it.
import { CollaborationClient } from '@collaboration-backend/client';

const client = new CollaborationClient({
  url: process.env.BILLING_AMQP_URL ?? '',
  exchange: process.env.COMMANDS_EXCHANGE,
  name: 'billing',
  apiKey: 'demo-key',
});

await client.publish('notifications.add.v1', {
  organizationId: 'acme',
  documentId: 'plan',
  notificationId: 'typescript-invoice-7', // a repetition with this id has no second effect
  actionUser: { userId: 'billing' },
  displayHeadlineMessageTemplate: 'Invoice 7 is paid',
  notifyUsers: [{ userId: 'ada' }],
});
console.log('published');
await client.close();
