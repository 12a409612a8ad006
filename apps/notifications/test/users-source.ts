import type { CopiedMembership } from '../src/db/members.repository';

/** Each membership shows one document, of which all users are notified. */
export const LEVELS: Record<string, CopiedMembership> = {
  general: { level: 'organization', id: '' },
  filed: { level: 'folder', id: 'f' },
  secret: { level: 'document', id: 'secret' },
};
export const DOCUMENTS = Object.keys(LEVELS);

export type Change = { day: number } & (
  { kind: 'added' | 'removed'; document: string; version: number } | { kind: 'left'; version: number }
);

/** Of all users, as those of the sequence. */
let versions = 0;

/** The users service: the numbers of one user, and the events that it publishes. */
export class Source {
  /** Number of the day. Events get older with it. */
  day = 0;
  private left = -1;
  private readonly rows = new Map(DOCUMENTS.map((document) => [document, { added: -1, removed: -1 }]));
  readonly events: Change[] = [];

  isLive(document: string): boolean {
    const { added, removed } = this.rows.get(document)!;
    return added > removed && added > this.left;
  }

  visible(): string[] {
    return DOCUMENTS.filter((document) => this.isLive(document));
  }

  add(document: string): void {
    const row = this.rows.get(document)!;
    if (!this.isLive(document)) row.added = ++versions;
    this.events.push({ kind: 'added', document, version: row.added, day: this.day });
  }

  remove(document: string): void {
    if (!this.isLive(document)) return;
    const version = ++versions;
    this.rows.get(document)!.removed = version;
    this.events.push({ kind: 'removed', document, version, day: this.day });
  }

  leave(): void {
    if (this.visible().length === 0) return;
    this.left = ++versions;
    this.events.push({ kind: 'left', version: this.left, day: this.day });
  }

  /** @param page number of memberships in an answer */
  answer(page: number, after?: CopiedMembership) {
    const live = this.visible().map((document) => ({ ...LEVELS[document], version: this.rows.get(document)!.added }));
    // In the order of the levels.
    const rest = live.toSorted((a, b) => (a.level < b.level ? -1 : 1)).filter(({ level }) => !after || level > after.level);
    return { memberships: rest.slice(0, page), more: rest.length > page, ...(this.left >= 0 && { left: this.left }) };
  }
}
