import { explainMissing, isNodeAway } from './check-topology';

it.each([
  [`NOT_FOUND - home node 'rabbit@one' of durable queue 'users.queries' in vhost '/' is down or inaccessible`, true],
  [`NOT_FOUND - failed to perform operation on queue 'users.queries' in vhost '/' due to timeout`, true],
  [`NOT_FOUND - queue 'users.queries' in vhost '/' process is stopped by supervisor`, true],
  [`NOT_FOUND - no queue 'users.queries' in vhost '/'`, false],
])('tells a queue whose node is away from one that does not exist: %s', (text, expected) => {
  expect(isNodeAway(new Error(`Operation failed: QueueDeclare; 404 (NOT-FOUND) with message "${text}"`))).toBe(expected);
});

it('says what to run when a queue goes between its check and its consumer', async () => {
  const refused = Object.assign(
    new Error(`Operation failed: BasicConsume; 404 (NOT-FOUND) with message "NOT_FOUND - no queue 'users.calls'"`),
    {
      code: 404,
    },
  );
  await expect(explainMissing('queue users.calls', Promise.reject(refused))).rejects.toThrow(
    'the queue users.calls does not exist in the broker: run "npm run setup"',
  );
});
