import type { Message, MessageProperties } from 'amqplib';
import { ApiError } from '@app/contracts/error';
import { decodeReply, encodeReply } from './reply-format';
import { Reply } from './reply';

const received = (body: string | Buffer, headers?: Record<string, unknown>): Message =>
  ({ content: Buffer.from(body), properties: { headers } as unknown as MessageProperties }) as Message;

const through = (reply: Parameters<typeof encodeReply>[0]) => {
  const { body, properties } = encodeReply(reply);
  return decodeReply(received(body, properties.headers as Record<string, unknown>));
};

describe('replies', () => {
  it.each([{ a: 1 }, null, 'text', [1], false])('carry the result %p', (result) => {
    expect(through({ result }).parse()).toEqual(result);
  });

  it('carry nothing as null', () => {
    expect(through({ result: undefined }).json).toBe('null');
  });

  it('carry headers, but not the status as one', () => {
    const answer = through({ result: new Reply({ a: 1 }, { 'x-notification-id': 'n', 'x-status': 'NOT_FOUND' }) });
    expect(answer).toMatchObject({ json: '{"a":1}', headers: { 'x-notification-id': 'n', 'x-status': 'OK' } });
  });

  it('carry errors', () => {
    const error = { status: 'NOT_FOUND', message: 'text', details: [{ field: 'f', message: 'm' }] } as const;
    expect(() => through({ error: { ...error, details: [...error.details] } })).toThrow(
      new ApiError('NOT_FOUND', 'text', [...error.details]),
    );
  });

  it.each([
    ['no headers', received('{}')],
    ['an unknown status', received('{}', { 'x-status': 'FINE' })],
    ['a status that is no string', received('{}', { 'x-status': ['OK'] })],
    ['an error that is not JSON', received('{', { 'x-status': 'NOT_FOUND' })],
    ['an error without a message', received('{"message":5}', { 'x-status': 'NOT_FOUND' })],
    ['an error that is null', received('null', { 'x-status': 'NOT_FOUND' })],
  ])('that make no sense are a bug of the service: %s', (_, reply) => {
    expect(() => decodeReply(reply)).toThrow(new ApiError('INTERNAL', 'The service gave an answer that cannot be read.'));
  });

  it('that are not JSON are a bug of the service', () => {
    const answer = decodeReply(received('{', { 'x-status': 'OK' }));
    expect(() => answer.parse()).toThrow(ApiError);
  });

  it('keep of the details what are details', () => {
    const details = [null, 5, { field: 'f' }, { field: 'f', message: 'm' }];
    const reply = received(JSON.stringify({ message: 'text', details }), { 'x-status': 'INVALID_ARGUMENT' });
    expect(() => decodeReply(reply)).toThrow(expect.objectContaining({ details: [{ field: 'f', message: 'm' }] }) as Error);
  });
});
