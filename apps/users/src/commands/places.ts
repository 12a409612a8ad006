/**
 * The users of a request by their places, 0 and so on, in the order in which they are first named. Answers are kept with places instead of ids, so
 * that nothing is left of a user who is erased. A repetition has the same request, and so the same places.
 */
export class Places {
  private readonly userIds: readonly string[];
  private readonly places: ReadonlyMap<string, number>;

  constructor(userIds: Iterable<string>) {
    this.userIds = [...new Set(userIds)];
    this.places = new Map(this.userIds.map((userId, place) => [userId, place]));
  }

  of(userId: string): number {
    return this.places.get(userId) ?? -1;
  }

  /** @param kept a place, or the id itself in an answer that an earlier version has kept */
  userId(kept: number | string): string {
    return typeof kept === 'string' ? kept : this.userIds[kept];
  }
}
