import { ApiError, type ErrorStatus } from '@app/contracts/error';
import { decide, INTERNAL, type Circumstances, type Outcome } from './ack-policy';

const AWAITED: Circumstances = { kind: 'commands', isEvent: false, awaited: true, attempt: 1, maxAttempts: 8, mayHaveRun: false };
const BACKGROUND: Circumstances = { ...AWAITED, awaited: false };
const failed = (error: unknown): Outcome => ({ kind: 'failed', error });
const refused = (status: ErrorStatus) => failed(new ApiError(status, 'text'));

describe('decide', () => {
  it('replies when a caller waits, and only acknowledges when no caller waits', () => {
    const outcome: Outcome = { kind: 'result', value: 1 };
    expect(decide(outcome, AWAITED)).toEqual({ do: 'replyThenAck', reply: { result: 1 } });
    expect(decide(outcome, BACKGROUND)).toEqual({ do: 'ack', because: 'acked' });
  });

  it.each([
    'INVALID_ARGUMENT',
    'FAILED_PRECONDITION',
    'UNAUTHENTICATED',
    'PERMISSION_DENIED',
    'NOT_FOUND',
    'ALREADY_EXISTS',
  ] as const)('gives up at once on %s', (status) => {
    expect(decide(refused(status), AWAITED)).toEqual({ do: 'ackThenReply', reply: { error: { status, message: 'text' } } });
    const error = { status, message: 'text' };
    expect(decide(refused(status), BACKGROUND)).toEqual({ do: 'refuseThenAck', error, stub: false });
    // The publisher of an event is this system.
    expect(decide(refused(status), { ...BACKGROUND, kind: 'events', isEvent: true })).toEqual({ do: 'deadThenAck', error });
  });

  it.each([
    ['UNAVAILABLE', 'ackThenReply'],
    ['RESOURCE_EXHAUSTED', 'ackThenReply'],
    // It promises nothing, so that its ack may be lost.
    ['DEADLINE_EXCEEDED', 'replyThenAck'],
  ] as const)('tries again on %s, when no caller waits', (status, awaited) => {
    expect(decide(refused(status), AWAITED)).toEqual({ do: awaited, reply: { error: { status, message: 'text' } } });
    expect(decide(refused(status), BACKGROUND)).toMatchObject({ do: 'retryThenAck' });
  });

  it.each([
    ['three in four', 0.25, ['1s', '5s', '30s', '5m', '5m', '5m', '5m', 'deadThenAck']],
    ['one in four a step longer', 0.24, ['5s', '30s', '5m', '5m', '5m', '5m', '5m', 'deadThenAck']],
  ])('waits longer before each further try, %s, and ends in the dead letters', (_, chance, expected) => {
    const ends = [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => {
      const decision = decide(refused('UNAVAILABLE'), { ...BACKGROUND, attempt }, () => chance);
      return decision.do === 'retryThenAck' ? decision.delay.name : decision.do;
    });
    expect(ends).toEqual(expected);
  });

  it('moves a suspect to the suspect queue, with and without a caller that waits', () => {
    for (const circumstances of [AWAITED, BACKGROUND])
      expect(decide({ kind: 'suspect' }, circumstances)).toEqual({ do: 'suspectThenAck' });
  });

  it('lets a suspect wait after each crash but the fourth, which makes a letter of it, with and without a caller that waits', () => {
    for (const circumstances of [AWAITED, BACKGROUND])
      expect([1, 3, 4, 7].map((crashes) => decide({ kind: 'crashed', crashes }, circumstances).do)).toEqual([
        'againThenAck',
        'againThenAck',
        'crashedThenAck',
        'crashedThenAck',
      ]);
  });

  it.each([new Error('inside'), new ApiError('INTERNAL', 'inside'), 'inside', undefined])(
    'hides the details of a bug from the caller: %p',
    (bug) => {
      expect(decide(failed(bug), AWAITED)).toEqual({ do: 'replyThenAck', reply: { error: INTERNAL } });
    },
  );

  it('names the bug in the dead letter after the last attempt', () => {
    expect(decide(failed(new TypeError('inside')), BACKGROUND)).toMatchObject({ do: 'retryThenAck' });
    expect(decide(failed(new TypeError('inside')), { ...BACKGROUND, attempt: 8 })).toEqual({
      do: 'deadThenAck',
      error: { status: 'INTERNAL', message: 'TypeError: inside' },
    });
  });

  it.each([
    ['UNAVAILABLE', /^The service is unavailable, and whether/],
    ['RESOURCE_EXHAUSTED', /^The service is unavailable, and whether/],
    ['PERMISSION_DENIED', /^text Whether/],
    ['UNAUTHENTICATED', /^text Whether/],
    ['NOT_FOUND', /^text Whether/],
  ] as const)('does not say %s when an earlier run may have been executed', (status, message) => {
    const again = { ...AWAITED, mayHaveRun: true };
    expect(decide(refused(status), again)).toEqual({
      do: 'replyThenAck',
      reply: { error: { status: 'DEADLINE_EXCEEDED', message: expect.stringMatching(message) as string } },
    });
    // A query changes nothing, however often it ran.
    const query = decide(refused(status), { ...again, kind: 'queries' });
    expect(query).toEqual({ do: 'replyThenAck', reply: { error: { status, message: 'text' } } });
  });

  it('holds commands without the database, and answers queries', () => {
    expect(decide({ kind: 'databaseAway' }, AWAITED)).toEqual({ do: 'hold' });
    expect(decide({ kind: 'databaseAway' }, BACKGROUND)).toEqual({ do: 'hold' });
    expect(decide({ kind: 'databaseAway' }, { ...AWAITED, kind: 'queries' })).toMatchObject({
      do: 'replyThenAck',
      reply: { error: { status: 'UNAVAILABLE' } },
    });
  });

  it('says that nothing was executed when no handler was started, unless an earlier delivery may have started it', () => {
    const outcome: Outcome = { kind: 'notStarted' };
    expect(decide(outcome, AWAITED)).toMatchObject({ do: 'ackThenReply', reply: { error: { status: 'UNAVAILABLE' } } });
    const again = decide(outcome, { ...AWAITED, mayHaveRun: true });
    expect(again).toMatchObject({ do: 'replyThenAck', reply: { error: { status: 'DEADLINE_EXCEEDED' } } });
  });

  it('refuses a malformed message: in the reply, else as a stub in the refused queue; a query is dropped', () => {
    const outcome: Outcome = { kind: 'malformed', error: new ApiError('INVALID_ARGUMENT', 'text') };
    const error = { status: 'INVALID_ARGUMENT', message: 'text' };
    expect(decide(outcome, AWAITED)).toEqual({ do: 'ackThenReply', reply: { error } });
    expect(decide(outcome, BACKGROUND)).toEqual({ do: 'refuseThenAck', error, stub: true });
    expect(decide(outcome, { ...BACKGROUND, kind: 'queries' })).toEqual({ do: 'ack', because: 'dropped' });
  });

  it('executes nothing after the deadline', () => {
    expect(decide({ kind: 'expired' }, AWAITED)).toEqual({ do: 'ack', because: 'expired' });
  });
});
