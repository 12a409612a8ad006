import type { ConsumeMessage, MessageProperties } from 'amqplib';
import { Authenticate } from '@app/contracts/users.authenticate';
import { readEnvelope } from './envelope';

const message = (properties: Partial<MessageProperties>, fields: Partial<ConsumeMessage['fields']> = {}): ConsumeMessage => ({
  content: Buffer.alloc(0),
  fields: { consumerTag: 't', deliveryTag: 1, redelivered: false, exchange: 'commands', routingKey: 'users.add.v1', ...fields },
  properties: { headers: { 'x-api-key': 'key' }, ...properties } as MessageProperties,
});

const read = (...args: Parameters<typeof message>) => readEnvelope(message(...args));

describe('readEnvelope', () => {
  it('needs an API key and nothing else', () => {
    const { context, address, problem } = read({});
    expect(problem).toBeUndefined();
    expect(address).toBeUndefined();
    expect(context).toMatchObject({ apiKey: 'key', awaited: false, attempt: 1, pattern: 'users.add.v1', redelivered: false });
    expect(context.requestId).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('needs no API key where the message says so, but takes no bad one', () => {
    expect(read({ headers: {} }, { routingKey: Authenticate.pattern }).problem).toBeUndefined();
    expect(read({ headers: { 'x-api-key': '' } }, { routingKey: Authenticate.pattern }).problem).toBeDefined();
    expect(read({ headers: undefined }).problem?.message).toBe('The header x-api-key is required.');
  });

  it.each(['', ' ', 'k'.repeat(257), 'a\nb', '\ud800', 5, null, Buffer.from('key'), { '!': 'timestamp', value: 1 }])(
    'refuses the API key %p',
    (apiKey) => {
      expect(read({ headers: { 'x-api-key': apiKey } })).toMatchObject({
        problem: { status: 'INVALID_ARGUMENT' },
        context: { apiKey: '' },
      });
    },
  );

  it('trusts user_id only of a message that was not dead-lettered: dead-lettering keeps the user_id of the first publisher', () => {
    expect(read({ userId: 'billing' }).context.userId).toBe('billing');
    const headers = { 'x-api-key': 'key', 'x-death': [] };
    expect(read({ userId: 'users', headers }).context.userId).toBeUndefined();
    const again = { ...headers, 'x-origin-user': 'billing' };
    expect(read({ userId: 'users', headers: again }, { exchange: 'retry' }).context.userId).toBe('billing');
  });

  it('refuses the headers CC and BCC', () => {
    expect(read({ headers: { 'x-api-key': 'key', CC: ['users.add.v1'] } }).problem?.message).toContain('CC and BCC');
  });

  it('refuses what a queue has dead-lettered into a lane, and takes what the queues of retries have dead-lettered', () => {
    const headers = { 'x-api-key': 'key', 'x-death': [] };
    for (const exchange of ['commands', 'commands.3'])
      expect(read({ headers }, { exchange }).problem?.message).toBe('The header x-death is not allowed.');
    for (const exchange of ['', 'retry']) expect(read({ headers }, { exchange }).problem).toBeUndefined();
  });

  it('takes what was published to an exchange of this system or to a queue, and refuses what came from another one by a binding', () => {
    for (const exchange of ['', 'calls', 'commands.3', 'retry', 'events.own'])
      expect(read({}, { exchange }).problem).toBeUndefined();
    for (const exchange of ['billing.events.dead', 'replies'])
      expect(read({}, { exchange }).problem?.message).toBe(
        'The message was published to an exchange that leads to no operation.',
      );
  });

  it('keeps a deadline only when a caller waits', () => {
    const headers = { 'x-api-key': 'key', 'x-deadline': 123 };
    expect(read({ headers }).context.deadline).toBeUndefined();
    expect(read({ headers, replyTo: 'amq.gen-a_B-c' }).context).toMatchObject({ deadline: 123, awaited: true });
    for (const deadline of ['123', 1.5, NaN, null]) {
      expect(read({ headers: { ...headers, 'x-deadline': deadline }, replyTo: 'q' }).problem).toBeDefined();
    }
  });

  it.each(['a b', '', 'q'.repeat(256), 'ü', 'a/b', 5])('does not answer to %p', (replyTo) => {
    expect(read({ replyTo })).toMatchObject({
      address: undefined,
      problem: { message: 'reply_to must be the name of a queue.' },
    });
  });

  it('does not answer when the correlation id cannot be returned', () => {
    expect(read({ replyTo: 'q', correlationId: 'c' }).address).toEqual({ replyTo: 'q', correlationId: 'c', batches: false });
    expect(read({ replyTo: 'q' }).address).toEqual({ replyTo: 'q', batches: false });
    const tooLong = read({ replyTo: 'q', correlationId: '\ufffd'.repeat(86) });
    expect(tooLong.address).toBeUndefined();
    expect(tooLong.problem?.message).toBe('correlation_id must be a string of at most 255 bytes.');
  });

  it('replaces a request id that it cannot log', () => {
    const requestId = (id: unknown) => read({ headers: { 'x-api-key': 'key', 'x-request-id': id } }).context.requestId;
    expect(requestId('abc-1')).toBe('abc-1');
    for (const id of ['', 'a\nb', 'x'.repeat(129), 7]) expect(requestId(id)).not.toBe(id);
  });

  it('trusts our own headers only when the message comes from a retry queue', () => {
    const ours = { 'x-attempt': 3, 'x-crashes': 2, 'x-routing-key': 'users.add.v1', 'x-origin-user': 'importer' };
    const headers = { 'x-api-key': 'key', ...ours };
    const forged = read({ headers, userId: 'gateway' }, { routingKey: 'users.exists.v1' });
    expect(forged.context).toMatchObject({ attempt: 1, pattern: 'users.exists.v1', userId: 'gateway' });
    expect(forged.crashes).toBeUndefined();
    const retried = read({ headers, userId: undefined }, { exchange: 'retry', routingKey: 'users.commands' });
    expect(retried.context).toMatchObject({ attempt: 3, pattern: 'users.add.v1', userId: 'importer' });
    expect(retried.crashes).toBe(2);
  });
});
