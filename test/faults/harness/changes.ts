import type { Ask, Thing } from './journal';
import type { Random } from './random';
import type { Cluster } from './cluster';

/** Names of the operations, after `/v1/`. */
export const OPERATIONS: Record<Thing['kind'], string> = {
  notification: 'notifications/add',
  user: 'users/add',
  deletion: 'notifications/delete',
  reading: 'notifications/update',
  mark: 'notifications/update',
  removal: 'users/delete',
};

/** Whether a thing is stored by its request. The others change what is stored. */
export const isAdded = ({ kind }: Thing): boolean => kind === 'notification' || kind === 'user';

/**
 * Changes of things that a workload has added. Each thing is changed by at most one request, which is sent once, and only when its addition was
 * answered with 200 and not repeated. So it is certain afterwards what each request has done.
 */
export class Changes {
  private readonly changeable: { thing: Thing; id: string }[] = [];
  private readonly excluded = new Set<string>();
  private marks = 0;

  constructor(
    private readonly random: Random,
    private readonly organizationId: string,
  ) {}

  /** An addition was answered with 200, and was sent once. */
  added(thing: Thing, id: string): void {
    if (!this.excluded.delete(thing.mark)) this.changeable.push({ thing, id });
  }

  /** It is sent again, so that its outcome may come later. */
  repeated({ mark }: Thing): void {
    const at = this.changeable.findIndex(({ thing }) => thing.mark === mark);
    if (at >= 0) this.changeable.splice(at, 1);
    else this.excluded.add(mark);
  }

  /** @returns undefined while there is nothing to change */
  next(): Thing | undefined {
    const { random } = this;
    if (this.changeable.length === 0) return undefined;
    const [{ thing, id }] = this.changeable.splice(random.between(0, this.changeable.length - 1), 1);
    const mark = `change ${this.marks++} ${random.word(12)}`;
    const change = (kind: Thing['kind'], target: string, data: object): Thing => ({
      ...{ kind, tenant: thing.tenant, mark, target, of: thing.mark },
      data: { organizationId: this.organizationId, ...data },
    });
    if (thing.kind === 'user') return change('removal', id, { userIds: [id] });
    if (random.chance(0.6)) return change('deletion', id, { notificationIds: [id] });
    if (random.chance(0.5)) return change('reading', id, { notifications: [{ id, readByUserIds: ['user 0'] }] });
    // A user of its own, so that nobody else moves the mark.
    return change('mark', `reader of ${mark}`, { userId: `reader of ${mark}`, readUpTo: Date.now() });
  }
}

/** Makes a name for the effect of a change. */
export const effectOf = (apiKey: string, { kind, target }: Pick<Thing, 'kind' | 'target'>): string =>
  `${apiKey} ${kind} ${target}`;

/** The effects of all changes that are stored. */
export async function effects({ sql }: Pick<Cluster, 'sql'>, organizationId: string): Promise<Set<string>> {
  const { rows } = await sql.query<{ key: string; kind: Thing['kind']; target: string }>(
    `WITH o AS (SELECT * FROM notifications.organizations WHERE organization_id = $1)
     SELECT api_key AS key, 'deletion' AS kind, n.id AS target FROM o JOIN notifications.notifications n ON n.organization = o.id
       AND n.document_id = ''
     UNION ALL
     SELECT api_key, 'reading', r.notification_id FROM o JOIN notifications.readings r ON r.organization = o.id AND r.read
     UNION ALL
     SELECT api_key, 'mark', m.user_id FROM o JOIN notifications.read_marks m ON m.organization = o.id
     UNION ALL
     SELECT api_key, 'removal', u.user_id FROM users.organizations u_o JOIN users.users u ON u.organization = u_o.id
       AND u.left_version > 0 WHERE u_o.organization_id = $1`,
    [organizationId],
  );
  return new Set(rows.map(({ key, ...effect }) => effectOf(key, effect)));
}

/** Reason why an answer of 200 says that a change of an existing thing was not made. */
export function undone({ kind, target = '' }: Thing, result: object): string | undefined {
  if (kind !== 'deletion' && kind !== 'reading' && kind !== 'removal') return undefined;
  const { data } = result as { data?: Record<string, { success: boolean }> };
  return data?.[target]?.success ? undefined : `the ${kind} of what is there: ${JSON.stringify(data)}`;
}

/** Marks of things whose notification may be gone. */
export function mayBeGone(asks: readonly Ask[], isRefusal: (status: number) => boolean): Set<string> {
  return new Set(
    asks.flatMap(({ thing, answer }) =>
      thing.kind === 'deletion' && thing.of && !(answer && isRefusal(answer.status)) ? thing.of : [],
    ),
  );
}
