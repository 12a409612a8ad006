// Prints added users, until Ctrl-C.
import { CollaborationClient } from '@collaboration-backend/client';

const client = new CollaborationClient({ url: process.env.BILLING_AMQP_URL ?? '', name: 'billing', logger: console });

await client.listen({
  queue: 'billing.events',
  handlers: {
    // A resolved handler acknowledges the event. A failed one is retried; after the eighth attempt the event goes to queue billing.events.dead.
    'user.added.v1': async (event) => {
      console.log(event.type, event.id, event.data.organizationId, event.data.users.map(({ userId }) => userId).join());
    },
  },
});
// Running handlers end first.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void client.close());
console.log('listening');
