import type { ListMembershipsResult } from '@app/contracts/memberships.list';
import type { CopiedMembership, FetchedMemberships, KnownMembership } from '../db/members.repository';

export interface MembersPart extends Omit<FetchedMemberships, 'more'> {
  /** The last membership that the part is about; undefined when nothing is after it. */
  end?: CopiedMembership;
}

/**
 * The changes of the copy that follow from one page of an answer: of the memberships that both lists are about.
 *
 * @param known copied memberships behind the end of the previous part, read before the question
 * @param most length of `known` when there may be more of them
 */
export function partOf(
  known: readonly KnownMembership[],
  { memberships, more, left }: Pick<ListMembershipsResult, 'memberships' | 'more' | 'left'>,
  most: number,
): MembersPart {
  const ends: CopiedMembership[] = [...known.slice(most - 1, most), ...(more ? memberships.slice(-1) : [])];
  const [end] = ends.sort(inOrder) as [CopiedMembership | undefined];
  const isInPart = (one: CopiedMembership) => !end || inOrder(one, end) <= 0;
  const copied = new Map(known.map((one) => [nameOf(one), Number(one.added)]));
  const right = new Set(memberships.map(nameOf));
  return {
    // Most of them are copied already when an earlier fetch was not finished.
    memberships: memberships.filter(
      (one) => isInPart(one) && !(one.version !== undefined && copied.get(nameOf(one))! >= one.version),
    ),
    left,
    wrong: known.filter((one) => one.live && isInPart(one) && !right.has(nameOf(one))),
    end,
  };
}

const nameOf = ({ level, id }: CopiedMembership): string => `${level} ${id}`;

/** Of the bytes, as both databases order them: the order of JavaScript differs beyond U+FFFF. */
const inOrder = (a: CopiedMembership, b: CopiedMembership): number =>
  a.level === b.level ? Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)) : a.level < b.level ? -1 : 1;
