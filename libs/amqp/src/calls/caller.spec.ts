import { Caller } from './caller';
import { RabbitConnection } from '../connection/connection';
import { silent } from '../connection/observer';

const TIMEOUT_MS = 20;

describe.each(['command', 'query'] as const)('a %s that waits for a connection', (kind) => {
  let caller: Caller;

  beforeEach(() => {
    // Never started, so nothing is ever written.
    caller = new Caller(new RabbitConnection({ url: 'amqp://127.0.0.1:1', name: 'test' }, silent), { appId: 'test' });
  });
  afterEach(() => caller.close(0));

  const refusal = (timeoutMs: number) =>
    expect(caller.call({ kind, pattern: 'users.add.v1' }, {}, { requestId: 'r', timeoutMs })).rejects.toMatchObject({
      status: 'UNAVAILABLE',
    });

  it('was not executed when its time ends', () => refusal(TIMEOUT_MS));

  it('was not executed when its time ends while the process is busy', async () => {
    const refused = refusal(TIMEOUT_MS);
    // All timers are late then, and run one after the other.
    for (const until = performance.now() + 2 * TIMEOUT_MS; performance.now() < until;);
    await refused;
  });

  it('was not executed when the caller is closed', async () => {
    const refused = refusal(60_000);
    await caller.close(0);
    await refused;
  });

  it('leaves nothing when its body has no JSON', async () => {
    const call = caller.call({ kind, pattern: 'users.add.v1' }, { count: 1n }, { requestId: 'r', timeoutMs: TIMEOUT_MS });
    await expect(call).rejects.toThrow(TypeError);
    expect(caller.pending).toBe(0);
  });
});
