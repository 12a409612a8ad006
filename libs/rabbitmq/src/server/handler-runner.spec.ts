import { Logger } from '@nestjs/common';
import type { MessageHandler } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { aDelivery } from '../../test/a-delivery';
import { HandlerRunner } from './handler-runner';

const PATTERN = 'users.add.v1';

describe(HandlerRunner.name, () => {
  afterEach(() => jest.restoreAllMocks());

  const full = new Error('could not extend file "base/16384/16397": No space left on device');
  const refusal = new ApiError('UNAVAILABLE', 'The users could not be stored in time; nothing was changed.', undefined, {
    cause: full,
  });

  const runnerOf = (thrown: Error) => {
    const handler: MessageHandler = () => Promise.reject(thrown);
    return new HandlerRunner(new Map([[PATTERN, handler]]), { isTransient: (error) => error === full });
  };

  it.each([
    ['a handler passes it on', full],
    ['a handler answers that nothing was changed', refusal],
  ])('writes why the database could not do it, with the request id, when %s', async (_, thrown) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const outcome = await runnerOf(thrown).outcomeOf(aDelivery({ pattern: PATTERN, requestId: 'r-1', userId: 'billing' }));
    expect(outcome).toMatchObject({ kind: 'failed', error: { status: 'UNAVAILABLE' } });
    expect(warn.mock.calls).toEqual([
      [
        expect.objectContaining({
          msg: 'a transient error of the database',
          reason: full.message,
          requestId: 'r-1',
          pattern: PATTERN,
          publisher: 'billing',
        }),
      ],
    ]);
  });

  it('writes why the database is away, also when the error has no message, as for a host with two addresses', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const away = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
    const handlers = new Map<string, MessageHandler>([[PATTERN, () => Promise.reject(away)]]);
    const runner = new HandlerRunner(handlers, { isUnavailable: () => true });
    await expect(runner.outcomeOf(aDelivery({ pattern: PATTERN }))).resolves.toEqual({ kind: 'databaseAway' });
    expect(warn).toHaveBeenCalledWith(expect.objectContaining({ msg: 'the database is away', reason: 'ECONNREFUSED' }));
  });

  it.each([
    ['a database that is away', 'warn', { isUnavailable: () => true }],
    ['a full disk', 'warn', { isTransient: () => true }],
    ['a bug', 'error', {}],
  ] as const)('writes 20 lines a minute of a publisher about %s: there may be thousands a second', async (_, level, options) => {
    const written = jest.spyOn(Logger.prototype, level).mockReturnValue();
    const handlers = new Map<string, MessageHandler>([[PATTERN, () => Promise.reject(new Error('failed'))]]);
    const runner = new HandlerRunner(handlers, options);
    for (let time = 0; time < 30; time++) await runner.outcomeOf(aDelivery({ pattern: PATTERN }));
    expect(written).toHaveBeenCalledTimes(20);
  });

  it('writes nothing about a refusal that the database has not caused', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const refused = new ApiError('NOT_FOUND', 'There is no such document.', undefined, { cause: new Error('23503') });
    await expect(runnerOf(refused).outcomeOf(aDelivery({ pattern: PATTERN }))).resolves.toEqual({
      kind: 'failed',
      error: refused,
    });
    expect(warn).not.toHaveBeenCalled();
  });
});
