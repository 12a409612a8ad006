import { partOf } from './members-part';
import type { KnownMembership } from '../db/members.repository';

const known = (...ids: string[]): KnownMembership[] =>
  ids.map((id) => ({ level: 'document', id, added: '7', live: id !== 'departed' }));
const answered = (...ids: string[]) => ids.map((id) => ({ level: 'document' as const, id, version: 7 }));
const idsOf = (memberships: readonly { id: string }[]) => memberships.map(({ id }) => id);
const part = (copied: readonly KnownMembership[], ids: string[], more = false) => {
  const { memberships, wrong, end } = partOf(copied, { memberships: answered(...ids), more }, 3);
  return { added: idsOf(memberships), wrong: idsOf(wrong), end: end?.id };
};

describe(partOf, () => {
  it('adds what is missing and ends what is wrong, and nothing else', () => {
    expect(part(known('a', 'departed'), ['b'])).toEqual({ added: ['b'], wrong: ['a'], end: undefined });
    expect(part(known('a'), ['a'])).toEqual({ added: [], wrong: [], end: undefined });
    const older = known('a').map((one) => ({ ...one, added: '6' }));
    expect(part(older, ['a'])).toEqual({ added: ['a'], wrong: [], end: undefined });
  });

  it('says nothing of memberships that only one of the two lists is about', () => {
    expect(part(known('b', 'd'), ['a', 'c'], true)).toEqual({ added: ['a', 'c'], wrong: ['b'], end: 'c' });
    expect(part(known('b', 'c', 'd'), ['a', 'e'])).toEqual({ added: ['a'], wrong: ['b', 'c', 'd'], end: 'd' });
    expect(part(known('b', 'c', 'd'), ['a', 'b'], true)).toEqual({ added: ['a'], wrong: [], end: 'b' });
  });

  it('compares ids as the databases do', () => {
    // In JavaScript the second is less than the first.
    expect(part(known('a', 'b', '\uffff'), ['c', '\u{10000}'], true).added).toEqual(['c']);
  });
});
