import type { UserEntry } from '@app/contracts/users.add';
import { entryProblem, mergedUsers, sortEntries } from './user-entries';

const FORM = 'email must have exactly one @ with text on both sides and no white space';

describe('entryProblem', () => {
  it.each([
    ['a userId alone', {}],
    ['everything', { name: 'Ada Lovelace', email: 'ada@example.com', initial: 'AL' }],
    ['a name of 320 characters that are two units each', { name: '😀'.repeat(320) }],
    ['an empty name and an empty initial', { name: '', initial: '' }],
    ['an e-mail in any script', { email: 'π@例え.jp' }],
    ['an initial of many code points', { initial: '👩‍👩‍👧‍👦' }],
  ])('accepts %s', (_, fields) => {
    expect(entryProblem({ userId: 'u', ...fields })).toBeUndefined();
  });

  it.each([
    ['name must be at most 320 characters', { name: 'x'.repeat(321) }],
    ['name must be at most 320 characters', { name: '😀'.repeat(321) }],
    ['name must not contain control characters', { name: 'Ada\nLovelace' }],
    ['email must be at most 320 characters', { email: `${'x'.repeat(320)}@x` }],
    ['email must not contain control characters', { email: 'a\u0085@b' }],
    [FORM, { email: '' }],
    [FORM, { email: 'nobody' }],
    [FORM, { email: '@example.com' }],
    [FORM, { email: 'ada@' }],
    [FORM, { email: 'a@b@c' }],
    [FORM, { email: 'a b@c' }],
    [FORM, { email: 'a@b\u00a0' }],
    ['initial must be at most 32 characters', { initial: 'x'.repeat(33) }],
    ['initial must not contain control characters', { initial: 'A\t' }],
  ])('says %j', (problem, fields) => {
    expect(entryProblem({ userId: 'u', ...fields })).toBe(problem);
  });
});

describe('sortEntries', () => {
  it('separates valid entries from invalid ones', () => {
    expect(sortEntries([{ userId: 'good', name: 'ada' }, { userId: 'bad', email: 'x' }, { userId: 'bare' }])).toEqual({
      accepted: [
        { userId: 'good', name: 'ada', email: undefined, initial: 'A', initialGenerated: true },
        { userId: 'bare', name: undefined, email: undefined, initial: undefined, initialGenerated: true },
      ],
      refused: [['bad', FORM]],
    });
  });

  it('prefers an initial that was sent, even an empty one', () => {
    const { accepted } = sortEntries([
      { userId: 'a', name: 'ada', initial: 'Q' },
      { userId: 'b', name: 'bob', initial: '' },
    ]);
    expect(accepted).toMatchObject([
      { initial: 'Q', initialGenerated: false },
      { initial: '', initialGenerated: false },
    ]);
  });

  it('makes one entry of equal userIds: later values win, values sent earlier stay', () => {
    const { accepted } = sortEntries([
      { userId: 'a', name: 'ada', email: 'a@x', initial: 'Q' },
      { userId: 'b' },
      { userId: 'a', name: 'grace' },
    ]);
    expect(accepted).toEqual([
      { userId: 'a', name: 'grace', email: 'a@x', initial: 'Q', initialGenerated: false },
      { userId: 'b', name: undefined, email: undefined, initial: undefined, initialGenerated: true },
    ]);
  });

  it('makes the initial from the name that wins', () => {
    expect(
      sortEntries([
        { userId: 'a', name: 'ada' },
        { userId: 'a', name: 'grace' },
      ]).accepted,
    ).toMatchObject([{ initial: 'G' }]);
  });

  it('judges equal userIds as one entry, whichever of them is bad', () => {
    const named = { userId: 'a', name: 'ada' };
    const bad = { userId: 'a', email: 'x' };
    const refused = { accepted: [], refused: [['a', FORM]] };
    expect(sortEntries([named, bad])).toEqual(refused);
    expect(sortEntries([bad, named])).toEqual(refused);
    expect(
      sortEntries([
        { ...named, ...bad },
        { userId: 'a', email: 'a@x' },
      ]),
    ).toMatchObject({
      accepted: [{ name: 'ada', email: 'a@x' }],
      refused: [],
    });
  });

  it('accepts property names such as __proto__ as userIds', () => {
    const names = ['__proto__', 'constructor', 'toString'];
    expect(sortEntries(names.map((userId) => ({ userId }))).accepted.map(({ userId }) => userId)).toEqual(names);
  });
});

describe('mergedUsers', () => {
  /** Each field is there or not. */
  const entriesOf = (...[fullName, address, letter]: [string, string, string]): UserEntry[] =>
    [undefined, fullName].flatMap((name) =>
      [undefined, address].flatMap((email) => [undefined, letter].map((initial) => ({ userId: 'u', name, email, initial }))),
    );
  const calls = entriesOf('bob', 'bob@example.com', '').flatMap((before) =>
    entriesOf('ada', 'ada@example.com', 'Q').map((later) => ({ before, later })),
  );

  it.each(calls)('makes of calls with $before and $later what one call with both makes', ({ before, later }) => {
    const ofEach = [before, later].flatMap((entry) => sortEntries([entry]).accepted);
    expect(mergedUsers(ofEach)).toEqual(sortEntries([before, later]).accepted);
  });
});
