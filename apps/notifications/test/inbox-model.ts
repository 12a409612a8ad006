export const DOCUMENTS = ['d0', 'd1', 'd2', 'd3'];
export const LEVELS = [
  { level: 'organization', id: '' },
  { level: 'folder', id: 'f0' },
  { level: 'folder', id: 'f1' },
  ...DOCUMENTS.map((id) => ({ level: 'document', id }) as const),
] as const;

type Level = (typeof LEVELS)[number];

interface Stored {
  id: string;
  timestamp: number;
  document: string;
  location?: string;
  to: string[];
  notifyAll: boolean;
}

/** The meaning of the operations for the inboxes of one organization, without any bound. */
export class Model {
  readonly stored = new Map<string, Stored>();
  private readonly taken = new Set<string>();
  private readonly memberships = new Set<string>();
  private readonly documents = new Map<string, { folder?: string; access: string }>();
  private readonly marks = new Map<string, { upTo: number; asked: number; each: Map<string, boolean> }>();

  /** @param settled the moment before which everything is visible, in epoch milliseconds */
  constructor(private readonly settled: number) {}

  add(one: Stored): boolean {
    if (this.taken.has(one.id)) return false;
    this.taken.add(one.id);
    this.stored.set(one.id, one);
    return true;
  }

  /** Its id stays taken. */
  delete(id: string): void {
    this.stored.delete(id);
    for (const { each } of this.marks.values()) each.delete(id);
  }

  /** As if it had never been there. */
  expire(id: string): void {
    if (this.stored.has(id)) this.taken.delete(id);
    this.delete(id);
  }

  /** Ids of deleted notifications may be used again. */
  free(): void {
    for (const id of this.taken) if (!this.stored.has(id)) this.taken.delete(id);
  }

  join = (user: string, { level, id }: Level) => this.memberships.add([user, level, id].join());
  end = (user: string, { level, id }: Level) => this.memberships.delete([user, level, id].join());
  leave = (user: string) => LEVELS.forEach((level) => this.end(user, level));
  setDocument = (document: string, access: string, folder?: string) => this.documents.set(document, { access, folder });

  private is = (user: string, level: string, id = '') => this.memberships.has([user, level, id].join());

  shown(user: string): Stored[] {
    return [...this.stored.values()].filter(({ document, to, notifyAll }) => {
      const { access = '', folder } = this.documents.get(document) ?? {};
      return (
        to.includes(user) ||
        (notifyAll &&
          (this.is(user, 'document', document) ||
            (folder !== undefined && this.is(user, 'folder', folder)) ||
            access === 'public' ||
            (access !== 'restricted' && this.is(user, 'organization'))))
      );
    });
  }

  /** What the user is shown under the filters, newest first. */
  inbox({ userId, documentId, locationId }: { userId: string; documentId?: string; locationId?: string }) {
    return this.shown(userId)
      .filter(({ document }) => document === (documentId ?? document))
      .filter(({ location }) => location === (locationId ?? location))
      .sort((a, b) => b.timestamp - a.timestamp || (a.id < b.id ? 1 : -1))
      .map((one) => ({ id: one.id, timestamp: one.timestamp, read: this.isRead(userId, one) }));
  }

  private of(user: string) {
    const known = this.marks.get(user) ?? { upTo: -1, asked: -1, each: new Map<string, boolean>() };
    this.marks.set(user, known);
    return known;
  }

  mark = (user: string, id: string, read: boolean) => this.stored.has(id) && this.of(user).each.set(id, read);

  upTo(user: string, moment: number): void {
    const state = this.of(user);
    if (moment <= state.asked) return;
    state.asked = moment;
    state.upTo = Math.max(state.upTo, Math.min(moment, this.settled));
    const shown = new Set(this.shown(user));
    for (const one of this.stored.values())
      if (one.timestamp <= state.upTo || (shown.has(one) && one.timestamp <= moment)) state.each.set(one.id, true);
  }

  isRead(user: string, { id, timestamp }: Stored): boolean {
    const { each, upTo } = this.of(user);
    return each.get(id) ?? timestamp <= upTo;
  }
}
