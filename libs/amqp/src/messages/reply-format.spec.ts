import type { Message } from 'amqplib';
import { ApiError } from '@app/contracts/error';
import { BATCH_TYPE, decodeReply, encodeBatch, encodeReply, repliesIn, type ReceivedReply } from './reply-format';
import { JsonBytes, Reply } from './reply';

const received = (body: string | Buffer, headers: Record<string, unknown> = {}): ReceivedReply => ({
  content: Buffer.from(body),
  headers,
});

const through = (reply: Parameters<typeof encodeReply>[0]) => {
  const { body, properties } = encodeReply(reply);
  return decodeReply(received(body, properties.headers as Record<string, unknown>));
};

describe('replies', () => {
  it.each([{ a: 1 }, null, 'text', [1], false])('carry the result %p', (result) => {
    expect(through({ result }).parse()).toEqual(result);
  });

  it('carry undefined as null', () => {
    expect(through({ result: undefined }).body.toString()).toBe('null');
  });

  it('carry JSON unchanged', () => {
    expect(through({ result: new JsonBytes(Buffer.from('{"a": 1}')) }).body.toString()).toBe('{"a": 1}');
  });

  it('carry headers, but a handler cannot set x-status', () => {
    const answer = through({ result: new Reply({ a: 1 }, { 'x-notification-id': 'n', 'x-status': 'NOT_FOUND' }) });
    expect(answer).toMatchObject({ body: Buffer.from('{"a":1}'), headers: { 'x-notification-id': 'n', 'x-status': 'OK' } });
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

  it('cannot carry a result that is not JSON', () => {
    const answer = decodeReply(received('{', { 'x-status': 'OK' }));
    expect(() => answer.parse()).toThrow(ApiError);
  });

  it('drop details of another shape', () => {
    const details = [null, 5, { field: 'f' }, { field: 'f', message: 'm' }];
    const reply = received(JSON.stringify({ message: 'text', details }), { 'x-status': 'INVALID_ARGUMENT' });
    expect(() => decodeReply(reply)).toThrow(expect.objectContaining({ details: [{ field: 'f', message: 'm' }] }) as Error);
  });

  it('share a message, and each keeps its headers and its exact body', () => {
    const replies = [
      { correlationId: 'é "1"', reply: encodeReply({ result: new Reply({ text: 'ünïcode 😀' }, { 'x-notification-id': 'ü' }) }) },
      { correlationId: '2', reply: encodeReply({ error: { status: 'NOT_FOUND', message: 'text' } }) },
      { correlationId: '3', reply: encodeReply({ result: undefined }) },
    ];
    const decoded = repliesIn({ content: encodeBatch(replies), properties: { type: BATCH_TYPE } } as Message);
    expect(decoded.map(({ correlationId }) => correlationId)).toEqual(['é "1"', '2', '3']);
    expect(decodeReply(decoded[0].reply)).toMatchObject({
      body: Buffer.from('{"text":"ünïcode 😀"}'),
      headers: { 'x-notification-id': 'ü', 'x-status': 'OK' },
    });
    expect(() => decodeReply(decoded[1].reply)).toThrow(new ApiError('NOT_FOUND', 'text'));
    expect(decodeReply(decoded[2].reply).body.toString()).toBe('null');
  });
});
