import { BadRequestException, NotFoundException } from '@nestjs/common';
import { ApiError, ERROR_STATUSES, type ErrorStatus } from '@app/contracts/error';
import { errorEnvelope, resultEnvelope } from './envelope';
import { httpAnswerOf, refusal } from './http-error';

const EXPECTED: Record<ErrorStatus, number> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
  INTERNAL: 500,
};

describe('httpAnswerOf', () => {
  it.each(ERROR_STATUSES)('knows the HTTP status of %s', (status) => {
    const answer = httpAnswerOf(new ApiError(status, 'why'));
    expect(answer.status).toBe(EXPECTED[status]);
    expect(answer.error.status).toBe(status);
    expect('retry-after' in answer.headers).toBe(status === 'UNAVAILABLE' || status === 'RESOURCE_EXHAUSTED');
  });

  it('keeps the HTTP status of a refusal', () => {
    expect(httpAnswerOf(refusal(415, 'no'))).toMatchObject({ status: 415, error: { status: 'INVALID_ARGUMENT' } });
  });

  it.each([
    ['an Error', new Error('connect to 10.0.0.1 failed')],
    ['a string', 'secret'],
    ['nothing', undefined],
    ['null', null],
    ['a 5xx of the framework', Object.assign(new Error('inside'), { statusCode: 502 })],
    ['an INTERNAL of a service', new ApiError('INTERNAL', 'inside')],
  ])('says the same fixed text for %s', (_, thrown) => {
    const { status, error } = httpAnswerOf(thrown);
    expect(status).toBe(500);
    expect(error.toBody()).toEqual({ status: 'INTERNAL', message: 'An internal error occurred. The outcome is unknown.' });
  });

  it.each([
    [new NotFoundException('Cannot GET /secret'), 404, 'NOT_FOUND'],
    [new BadRequestException('inside'), 400, 'INVALID_ARGUMENT'],
    [Object.assign(new Error('inside'), { statusCode: 413 }), 413, 'INVALID_ARGUMENT'],
    [Object.assign(new Error('inside'), { statusCode: 415 }), 415, 'INVALID_ARGUMENT'],
    [Object.assign(new Error('aborted'), { statusCode: 400 }), 400, 'INVALID_ARGUMENT'],
  ])('renders %s in words of ours', (thrown, http, status) => {
    const answer = httpAnswerOf(thrown);
    expect(answer).toMatchObject({ status: http, error: { status } });
    expect(answer.error.message).not.toMatch(/inside|aborted|secret/);
  });
});

describe('the envelopes', () => {
  it('contain the reply unparsed', () => {
    for (const json of ['{"a": 1e2}', `{"a": "${'é😀\\u0000'.repeat(10_000)}"}`])
      expect(resultEnvelope(Buffer.from(json)).toString()).toBe(`{"result":${json}}`);
  });

  it('contain only message, status and details of an error', () => {
    const body = { ...new ApiError('INVALID_ARGUMENT', 'why', [{ field: 'f', message: 'm' }]).toBody(), stack: 'inside' };
    expect(JSON.parse(errorEnvelope(body))).toEqual({
      error: { message: 'why', status: 'INVALID_ARGUMENT', details: [{ field: 'f', message: 'm' }] },
    });
  });

  it('omit missing details', () => {
    expect(errorEnvelope({ message: 'why', status: 'NOT_FOUND' })).toBe('{"error":{"message":"why","status":"NOT_FOUND"}}');
  });
});
