// Calls operations and waits for the replies.
import { ApiError, CollaborationClient } from '@collaboration-backend/client';

const client = new CollaborationClient({
  url: process.env.BILLING_AMQP_URL ?? '',
  exchange: process.env.COMMANDS_EXCHANGE,
  name: 'billing',
  apiKey: 'demo-key',
  timeoutMs: 5000,
});

const { result } = await client.call('users.add.v1', {
  organizationId: 'acme',
  users: [{ userId: 'ada', name: 'Ada Lovelace' }],
});
console.log(result.message);

try {
  await client.call('users.add.v1', { organizationId: 'acme', users: [] });
} catch (error) {
  if (error instanceof ApiError) console.log(`${error.status}: ${error.message}`);
  else throw error;
}

const access = await client.call('access.check.v1', { organizationId: 'acme', documentId: 'plan', userId: 'ada' });
console.log(access.result.allowed, access.result.level);
await client.close();
