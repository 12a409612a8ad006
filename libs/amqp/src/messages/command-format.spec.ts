import { commandMessage, COMMANDS_TYPE, MOST_COMMANDS, unpackCommands } from './command-format';
import { pack, Unreadable } from './packed';

const SENDER = { appId: 'gateway', userId: 'account' };

const request = (id: string, timeoutMs = 5000) => ({
  operation: { kind: 'command', pattern: 'users.add.v1' } as const,
  body: Buffer.from(`{"id":"${id}"}`),
  options: { apiKey: `key ${id}`, requestId: `request ${id}`, timeoutMs, messageId: `message ${id}` },
  correlationId: id,
  deadline: performance.now() + timeoutMs,
});

describe('a message with commands', () => {
  // The clock stands still.
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('is an ordinary message when it has one', () => {
    const { body, properties } = commandMessage([request('a')], 'all', SENDER, 'replies');
    expect(body.toString()).toBe('{"id":"a"}');
    expect(properties).toMatchObject({ type: 'users.add.v1', correlationId: 'a', expiration: 6000, persistent: true });
  });

  it('keeps the identity and the headers of each one', () => {
    const { body, properties } = commandMessage([request('a'), request('b')], 'all', SENDER, 'replies');
    expect(properties).toMatchObject({
      type: COMMANDS_TYPE,
      correlationId: 'all',
      replyTo: 'replies',
      persistent: true,
      ...SENDER,
    });
    expect(unpackCommands(body)).toEqual(
      ['a', 'b'].map((id) => ({
        correlationId: id,
        messageId: `message ${id}`,
        body: Buffer.from(`{"id":"${id}"}`),
        headers: {
          'x-api-key': `key ${id}`,
          'x-request-id': `request ${id}`,
          'x-deadline': expect.any(Number),
          'x-reply-batches': true,
        },
      })),
    );
  });

  it('keeps the deadline of each one, however long it has waited', () => {
    const askedAt = Date.now();
    const timeouts = [5000, 200, 3000];
    const requests = timeouts.map((timeoutMs, index) => request(String(index), timeoutMs));
    jest.advanceTimersByTime(150);
    const { body, properties } = commandMessage(requests, 'all', SENDER);
    const deadlines = unpackCommands(body).map(({ headers }) => headers['x-deadline']);
    expect(deadlines).toEqual(timeouts.map((timeoutMs) => askedAt + timeoutMs));
    expect(properties.expiration).toBe(5850);
  });

  it('expires a second after the last deadline, and never at a time before now', () => {
    const expirationOf = (...timeouts: number[]) =>
      commandMessage(
        timeouts.map((timeoutMs, index) => request(String(index), timeoutMs)),
        'all',
        SENDER,
      ).properties.expiration;
    expect(expirationOf(100, 5000, 3000)).toBe(6000);
    expect(expirationOf(-20_000, -20_000)).toBe(0);
  });

  it.each([
    ['more commands than allowed', Array.from({ length: MOST_COMMANDS + 1 }, () => ['id', 'message', {}])],
    ['no message id', [['id', null, {}]]],
    ['no correlation id', [[1, 'message', {}]]],
    ['headers that are no object', [['id', 'message', []]]],
    ['no headers', [['id', 'message']]],
  ])('cannot be read with %s', (_, heads) => {
    const content = pack(heads.map((head) => ({ head, body: Buffer.alloc(0) })));
    expect(() => unpackCommands(content)).toThrow(Unreadable);
  });
});
