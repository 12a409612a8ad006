import { Logger } from '@nestjs/common';
import { ApiError } from '@app/contracts/error';
import type { Verdict } from '@app/contracts/users.authenticate';
import { UNAVAILABLE } from '../../test/stub-rabbit';
import { StubUsers, who } from '../../test/stub-users';
import { Authenticator } from './authenticator';

const STALE_MAX_MS = 600_000;
const ADA = who('ada');

describe('Authenticator', () => {
  let users: StubUsers;
  let now: number;
  let authenticator: Authenticator;
  const verdictOf = (credentials = ADA) => authenticator.verdictOf(credentials, { requestId: 'request-1' });
  const questionsAfter = async (ms: number) => {
    now += ms;
    const before = users.asked.length;
    await verdictOf();
    return users.asked.length - before;
  };

  beforeAll(() => Logger.overrideLogger(false));
  beforeEach(() => {
    users = new StubUsers();
    now = 1_000_000;
    authenticator = new Authenticator(users, STALE_MAX_MS, () => now);
  });

  it.each<Verdict>(['accepted', 'disabled', 'refused'])('asks once, and remembers that credentials are %s', async (verdict) => {
    users.verdict = verdict;
    await expect(verdictOf()).resolves.toBe(verdict);
    await expect(verdictOf()).resolves.toBe(verdict);
    expect(users.asked).toHaveLength(1);
  });

  it('asks once for all calls that wait for the same credentials', async () => {
    users.at = 'hand';
    const waiting = [verdictOf(), verdictOf(), verdictOf()];
    expect(users.asked).toHaveLength(1);
    users.asked[0].settle('accepted');
    await expect(Promise.all(waiting)).resolves.toEqual(['accepted', 'accepted', 'accepted']);
  });

  it('uses an answer younger than 3 s', async () => {
    await verdictOf();
    expect(await questionsAfter(2999)).toBe(0);
  });

  it('uses an answer of 3 to 5 s, and renews it in the background', async () => {
    await verdictOf();
    users.at = 'hand';
    now += 3000;
    await expect(verdictOf()).resolves.toBe('accepted');
    expect(users.asked).toHaveLength(2);
    users.asked[1].settle('refused');
    await expect(verdictOf()).resolves.toBe('accepted');
    await expect(verdictOf()).resolves.toBe('refused');
  });

  it('does not use an answer older than 5 s while the users service answers: a revocation holds', async () => {
    await verdictOf();
    users.verdict = 'refused';
    now += 5000;
    await expect(verdictOf()).resolves.toBe('refused');
  });

  it('counts the age of an answer from its question', async () => {
    users.at = 'hand';
    const first = verdictOf();
    now += 900;
    users.asked[0].settle('accepted');
    await first;
    users.at = 'once';
    users.verdict = 'refused';
    now += 4100;
    await expect(verdictOf()).resolves.toBe('refused');
  });

  describe('when a key is revoked', () => {
    beforeEach(async () => {
      await verdictOf();
      await verdictOf(who('grace'));
      users.verdict = 'refused';
    });

    it('asks again for its credentials at once, and for no others', async () => {
      authenticator.forget('ada');
      await expect(verdictOf()).resolves.toBe('refused');
      await expect(verdictOf(who('grace'))).resolves.toBe('accepted');
      expect(users.asked).toHaveLength(3);
    });

    it('neither joins an earlier question nor caches its answer', async () => {
      users.at = 'hand';
      const before = verdictOf(who('bob'));
      now += 1;
      authenticator.forget('bob');
      now += 1;
      const after = verdictOf(who('bob'));
      expect(users.asked).toHaveLength(4);
      users.asked[3].settle('refused');
      await expect(after).resolves.toBe('refused');
      users.asked[2].settle('accepted');
      await before;
      await expect(verdictOf(who('bob'))).resolves.toBe('refused');
      expect(users.asked).toHaveLength(4);
    });

    it('does not use the earlier answer while the users service is away', async () => {
      users.verdict = UNAVAILABLE;
      authenticator.forget('ada');
      await expect(verdictOf()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    });
  });

  describe('while the users service is away', () => {
    beforeEach(async () => {
      await verdictOf();
      users.verdict = UNAVAILABLE;
      now += 5000;
      await expect(verdictOf()).resolves.toBe('accepted');
      expect(users.asked).toHaveLength(2);
    });

    it('tries once a second, and no call waits for it', async () => {
      expect(await questionsAfter(0)).toBe(0);
      expect(await questionsAfter(999)).toBe(0);
      users.at = 'hand';
      expect(await questionsAfter(1)).toBe(1);
      expect(await questionsAfter(0)).toBe(0);
    });

    it('accepts known credentials for AUTH_STALE_MAX and no longer', async () => {
      now += STALE_MAX_MS - 5000;
      await expect(verdictOf()).resolves.toBe('accepted');
      now += 1;
      await expect(verdictOf()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    });

    it('answers UNAVAILABLE for unknown credentials, at once until the next try is due', async () => {
      await expect(verdictOf(who('grace'))).rejects.toMatchObject({ status: 'UNAVAILABLE' });
      expect(users.asked).toHaveLength(2);
      now += 1000;
      await expect(verdictOf(who('grace'))).rejects.toMatchObject({ status: 'UNAVAILABLE' });
      expect(users.asked).toHaveLength(3);
    });

    it('asks as usual again after the first answer', async () => {
      users.verdict = 'accepted';
      now += 1000;
      await verdictOf(who('grace'));
      users.verdict = 'refused';
      await expect(verdictOf()).resolves.toBe('refused');
    });
  });

  it('reports a timeout of the question as UNAVAILABLE, because the call was not executed', async () => {
    users.verdict = new ApiError('DEADLINE_EXCEEDED', 'no answer');
    await expect(verdictOf()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  });

  it('has no answer until the probe got one, and then says while the users service is away', async () => {
    users.verdict = UNAVAILABLE;
    await authenticator.probe(5000);
    expect([authenticator.hasAnswered, authenticator.check()]).toEqual([false, 'has not answered yet']);
    users.verdict = 'refused';
    await authenticator.probe(5000);
    expect([authenticator.hasAnswered, authenticator.check()]).toEqual([true, undefined]);
    now += 4999;
    await authenticator.probe(5000);
    expect(users.asked).toHaveLength(2);
    now += 1;
    users.verdict = UNAVAILABLE;
    await authenticator.probe(5000);
    expect([authenticator.hasAnswered, authenticator.check()]).toEqual([true, 'does not answer']);
    users.verdict = 'accepted';
    await authenticator.probe(5000);
    expect(authenticator.check()).toBeUndefined();
  });

  it('takes any answer for a sign of the users service', async () => {
    await verdictOf();
    expect(authenticator.check()).toBeUndefined();
    await authenticator.probe(5000);
    expect(users.asked).toHaveLength(1);
  });

  it('treats an unknown verdict like a missing answer', async () => {
    users.verdict = 'perhaps' as Verdict;
    await expect(verdictOf()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  });

  it('keeps good credentials through a flood of wrong ones', async () => {
    await verdictOf();
    users.verdict = 'refused';
    for (let index = 0; index < 10_001; index++) await verdictOf(who(`stranger ${index}`));
    const asked = users.asked.length;
    await expect(verdictOf()).resolves.toBe('accepted');
    expect(users.asked).toHaveLength(asked);
  });
});
