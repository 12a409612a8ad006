// Prints the users that are added, until Ctrl-C.
import { CollaborationClient } from '@collaboration-backend/client';

const client = new CollaborationClient({ url: process.env.BILLING_AMQP_URL ?? '', name: 'billing', logger: console });

await client.listen({
  queue: 'billing.events',
  handlers: {
    // Resolved is done; an error is tried again, and goes to queue billing.events.dead after the eighth time.
    'user.added.v1': async (event) => {
      console.log(event.type, event.id, event.data.organizationId, event.data.users.map(({ userId }) => userId).join());
    },
  },
});
console.log('listening');
process.once('SIGINT', () => void client.close());
