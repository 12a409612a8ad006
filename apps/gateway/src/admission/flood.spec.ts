import { Logger } from '@nestjs/common';
import { ApiError } from '@app/contracts/error';
import type { Verdict } from '@app/contracts/users.authenticate';
import { eventually } from '@app/testing/eventually';
import { StubUsers, who } from '../../test/stub-users';
import { Authenticator, MAX_FIRST_QUESTIONS, MAX_WAITING_QUESTIONS } from './authenticator';

/** First questions of one network that wait when others have none. */
const MOST_WAITING = Math.ceil(0.8 * MAX_WAITING_QUESTIONS);

describe('a flood of new credentials', () => {
  let users: StubUsers;
  let now: number;
  let authenticator: Authenticator;
  const verdictOf = (credentials = who('ada'), network = 'flood') =>
    authenticator.verdictOf(credentials, { requestId: 'request-1', network });

  beforeAll(() => Logger.overrideLogger(false));
  const LOST = new ApiError('DEADLINE_EXCEEDED', 'no answer');
  let flood: Promise<Verdict>[];
  beforeEach(async () => {
    users = new StubUsers();
    now = 1_000_000;
    authenticator = new Authenticator(users, 600_000, () => now);
    await verdictOf();
    users.at = 'hand';
    const strangers = MAX_FIRST_QUESTIONS + MOST_WAITING;
    flood = Array.from({ length: strangers }, (_, index) => verdictOf(who(`stranger ${index}`)));
    flood.forEach((one) => void one.catch(() => undefined));
  });

  it('asks few questions at a time, queues some, and refuses the rest at once', async () => {
    expect(users.asked).toHaveLength(1 + MAX_FIRST_QUESTIONS);
    await expect(verdictOf(who('one more'))).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    users.asked.splice(0).forEach(({ settle }) => settle('refused'));
    await Promise.all(flood.slice(0, MAX_FIRST_QUESTIONS));
    expect(users.asked).toHaveLength(MAX_FIRST_QUESTIONS);
    const grace = verdictOf(who('grace'));
    users.at = 'once';
    users.verdict = 'accepted';
    users.asked.forEach(({ settle }) => settle('refused'));
    await Promise.all(flood);
    await expect(grace).resolves.toBe('accepted');
  });

  it('asks for those of another network in turn', async () => {
    const other = verdictOf(who('grace'), 'other');
    users.asked[1].settle('refused');
    users.asked[2].settle('refused');
    await eventually(() => users.asked.some(({ apiKey }) => apiKey === 'grace'));
    users.at = 'once';
    users.verdict = 'accepted';
    users.asked.forEach(({ settle }) => settle('accepted'));
    await expect(other).resolves.toBe('accepted');
    await Promise.all(flood);
  });

  it('refuses a call that waited longer than the timeout of a question', async () => {
    now += 1001;
    users.asked.forEach(({ settle }) => settle('refused'));
    const outcomes = await Promise.allSettled(flood);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(MOST_WAITING);
    expect(users.asked).toHaveLength(1 + MAX_FIRST_QUESTIONS);
  });

  it('renews known credentials without waiting for a turn', async () => {
    now += 5000;
    const renewed = verdictOf();
    expect(users.asked.at(-1)?.apiKey).toBe('ada');
    users.at = 'once';
    users.asked.forEach(({ settle }) => settle('refused'));
    await expect(renewed).resolves.toBe('refused');
    await Promise.allSettled(flood);
  });

  it('does not consider the users service away after one lost question: a revocation still takes effect', async () => {
    now += 1;
    users.asked[1].settle('refused');
    await flood[0];
    users.asked[2].settle(LOST);
    await expect(flood[1]).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    users.at = 'once';
    users.verdict = 'refused';
    now += 5000;
    await expect(verdictOf()).resolves.toBe('refused');
    users.asked.forEach(({ settle }) => settle('refused'));
    await Promise.allSettled(flood);
  });

  it('asks once more for known credentials whose renewal is lost, and uses no verdict older than 5 s', async () => {
    now += 5000;
    const renewed = verdictOf();
    const lost = users.asked.at(-1);
    now += 1;
    users.asked[1].settle('refused');
    await flood[0];
    const before = users.asked.length;
    lost?.settle(LOST);
    await eventually(() => users.asked.length > before);
    users.asked.at(-1)?.settle('refused');
    await expect(renewed).resolves.toBe('refused');
    users.at = 'once';
    users.asked.forEach(({ settle }) => settle('refused'));
    await Promise.allSettled(flood);
  });
});
