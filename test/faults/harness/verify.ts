import type { NotificationItem } from '@app/contracts/notifications.get';
import { effectOf, effects, isAdded, mayBeGone } from './changes';
import { REQUEST_TIMEOUT_MS, type Cluster } from './cluster';
import type { Ask, Journal, Thing } from './journal';

/** Statuses which mean that nothing was done and nothing will be. */
const isRefusal = (status: number) => status === 503 || (status >= 400 && status < 500);

/** Longest delay by a machine that is not busy with other work, in milliseconds. */
export const QUIET_MS = 250;

export interface Verdict {
  asked: number;
  statuses: Record<string, number>;
  /** Share of 200 among calls without a long delay by the machine itself. */
  share: number;
  /** Answered with 200, but missing or different; or deleted, and there. */
  lost: string[];
  duplicated: string[];
  /** Stored or changed although every answer was a refusal, or although no client of that tenant sent it. */
  unasked: string[];
  /** Changed or answered more than a second after the deadline. */
  late: string[];
  malformed: string[];
}

/** Requests of a client in its own organization and document. */
export interface Asked {
  organizationId: string;
  documentId: string;
  journal: Pick<Journal, 'read'>;
}

interface Row {
  tenant: string;
  mark: string;
  id: string;
  kind: 'notification' | 'user' | 'former user';
}

/** The system from which the data is read back. */
export type ReadBack = Pick<Cluster, 'tenants' | 'sql' | 'gatewayUrl'>;

/** Reads all data back over HTTP and SQL, and compares it with the journal. */
export async function verify(cluster: ReadBack, workload: Asked): Promise<Verdict> {
  const asks = workload.journal.read();
  const rows = await readRows(cluster, workload.organizationId);
  const verdict: Verdict = {
    asked: asks.length,
    statuses: {},
    share: shareOf200(asks.filter(({ answer }) => answer && answer.noiseMs < QUIET_MS)),
    lost: [],
    duplicated: [],
    unasked: [],
    late: [],
    malformed: [],
  };
  for (const { answer } of asks) {
    const status = String(answer?.status);
    verdict.statuses[status] = (verdict.statuses[status] ?? 0) + 1;
    if (answer?.malformed) verdict.malformed.push(answer.malformed);
    if (!answer || answer.ms > REQUEST_TIMEOUT_MS + 1000 + answer.noiseMs)
      verdict.late.push(
        `answered ${status} after ${answer?.ms.toFixed()} ms, ${answer?.noiseMs.toFixed()} ms of them the machine's`,
      );
  }

  const byMark = groupBy(rows, ({ mark }) => mark);
  const asksByMark = groupBy(
    asks.filter(({ thing }) => isAdded(thing)),
    ({ thing }) => thing.mark,
  );
  const gone = mayBeGone(asks, isRefusal);
  for (const [mark, found] of byMark) {
    const thing = asksByMark.get(mark)?.[0]?.thing;
    if (!thing || found.some(({ tenant }) => tenant !== apiKeyOf(cluster, thing)))
      verdict.unasked.push(`not sent by any client: ${mark}`);
    if (found.length > 1) verdict.duplicated.push(`${found.length} times: ${mark}`);
  }
  for (const [mark, asksOfThing] of asksByMark) {
    const found = byMark.get(mark) ?? [];
    if (found.length > 0 || !gone.has(mark)) judge(mark, asksOfThing, found, verdict);
  }
  const changed = await effects(cluster, workload.organizationId);
  const changes = asks.filter(({ thing }) => !isAdded(thing));
  for (const ask of changes)
    judgeChange(ask, changed.has(effectOf(apiKeyOf(cluster, ask.thing), ask.thing)), byMark.has(ask.thing.of ?? ''), verdict);
  for (const tenant of cluster.tenants.keys()) await compareWithHttp(cluster, workload, tenant, rows, asksByMark, verdict);
  return verdict;
}

function shareOf200(asks: Ask[]): number {
  return asks.length === 0 ? 1 : asks.filter(({ answer }) => answer?.status === 200).length / asks.length;
}

function judge(mark: string, asks: Ask[], rows: Row[], verdict: Verdict): void {
  const answered = asks.filter(({ answer }) => answer?.status === 200);
  if (answered.length > 0 && rows.length === 0) verdict.lost.push(`200, and not there: ${mark}`);
  for (const { answer, thing } of answered) {
    if (thing.kind === 'notification' && rows[0] && answer?.id !== rows[0].id)
      verdict.lost.push(`answered as ${answer?.id}, is there as ${rows[0].id}: ${mark}`);
  }
  if (rows.length > 0 && asks.every(({ answer }) => answer && isRefusal(answer.status)))
    verdict.unasked.push(`refused with ${asks.map(({ answer }) => answer?.status).join()}, but stored: ${mark}`);
  asks.forEach((ask, index) => {
    // A later request for the same thing may store it.
    const decisive = index === asks.length - 1 || ask.finally;
    if (ask.finally !== undefined && decisive && ask.finally !== rows.length > 0)
      verdict.late.push(
        `${ask.answer?.status}: ${ask.finally ? 'there' : 'absent'} one second after the deadline, not in the end`,
      );
  });
}

/** @param isThere whether the changed thing is there */
function judgeChange({ thing, answer, finally: settled }: Ask, isDone: boolean, isThere: boolean, verdict: Verdict): void {
  const name = `${thing.kind} of ${thing.target}`;
  if (answer?.undone) verdict.lost.push(answer.undone);
  if (answer?.status === 200 && !isDone) verdict.lost.push(`200, and not done: ${name}`);
  if (thing.kind === 'deletion' && isDone && isThere) verdict.lost.push(`deleted, and there: ${name}`);
  if (isDone && answer && isRefusal(answer.status))
    verdict.unasked.push(`refused with ${answer.status} (${answer.error}), but done: ${name}`);
  if (settled !== undefined && settled !== isDone)
    verdict.late.push(
      `${answer?.status}: ${settled ? 'done' : 'not done'} one second after the deadline, not in the end: ${name}`,
    );
}

function groupBy<T>(list: readonly T[], keyOf: (element: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const element of list) {
    const group = groups.get(keyOf(element));
    if (group) group.push(element);
    else groups.set(keyOf(element), [element]);
  }
  return groups;
}

const apiKeyOf = (cluster: ReadBack, { tenant }: Thing): string => cluster.tenants[tenant]['x-svc-api-key'];

async function readRows(cluster: ReadBack, organizationId: string): Promise<Row[]> {
  const { rows } = await cluster.sql.query<Row>(
    `SELECT o.api_key AS tenant, n.content ->> 'displayHeadlineMessageTemplate' AS mark, n.id, 'notification' AS kind
     FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
     WHERE o.organization_id = $1 AND n.document_id <> ''
     UNION ALL
     SELECT o.api_key, u.name, u.user_id, CASE WHEN u.left_version > 0 THEN 'former user' ELSE 'user' END
     FROM users.users u JOIN users.organizations o ON o.id = u.organization
     WHERE o.organization_id = $1`,
    [organizationId],
  );
  return rows;
}

async function compareWithHttp(
  cluster: ReadBack,
  { organizationId, documentId }: Asked,
  tenant: number,
  rows: Row[],
  asks: Map<string, Ask[]>,
  verdict: Verdict,
): Promise<void> {
  const items = await getAll(cluster, tenant, { organizationId, documentId });
  const shown = new Map(items.map((item) => [item.displayHeadlineMessageTemplate, item]));
  const apiKey = cluster.tenants[tenant]['x-svc-api-key'];
  const stored = rows.filter((row) => row.kind === 'notification' && row.tenant === apiKey);
  for (const { mark } of stored) {
    const item = shown.get(mark);
    const sent = asks.get(mark)?.[0]?.thing.data;
    if (!item) verdict.lost.push(`stored, and not shown: ${mark}`);
    else if (sent && !isAsSent(item, sent)) verdict.lost.push(`not as it was sent: ${mark}`);
  }
  const marks = new Set(stored.map(({ mark }) => mark));
  for (const { displayHeadlineMessageTemplate: mark } of items)
    if (!marks.has(mark)) verdict.unasked.push(`shown to ${apiKey}, and not its own: ${mark}`);
  if (items.length !== shown.size) verdict.duplicated.push(`${items.length} shown, ${shown.size} of them different`);

  // A user who is only named, and a user who was added and is reached by notifyAll.
  const member = rows.find((row) => row.kind === 'user' && row.tenant === apiKey)?.id;
  for (const userId of ['user 0', member ?? []].flat()) {
    const isReached = ({ notifyUsers }: NotificationItem) =>
      userId in notifyUsers || (userId === member && Object.keys(notifyUsers).length === 0);
    const expected = items.filter(isReached).length;
    const ofUser = await getAll(cluster, tenant, { organizationId, userId });
    if (ofUser.length !== expected) verdict.lost.push(`${userId} is shown ${ofUser.length} notifications instead of ${expected}`);
  }
}

function isAsSent(item: NotificationItem, sent: Record<string, unknown>): boolean {
  const {
    actionUser,
    displayBodyMessage,
    notifyUsers = [],
  } = sent as {
    actionUser: { userId: string; name: string };
    displayBodyMessage: string;
    notifyUsers?: { userId: string }[];
  };
  return (
    item.displayBodyMessage === displayBodyMessage &&
    item.actionUser.userId === actionUser.userId &&
    item.actionUser.name === actionUser.name &&
    Object.keys(item.notifyUsers).sort().join() === [...new Set(notifyUsers.map(({ userId }) => userId))].sort().join()
  );
}

async function getAll(cluster: ReadBack, tenant: number, filter: object): Promise<NotificationItem[]> {
  const items: NotificationItem[] = [];
  let pageToken: string | undefined;
  do {
    const response = await fetch(`${cluster.gatewayUrl}/v1/notifications/get`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...cluster.tenants[tenant] },
      body: JSON.stringify({ data: { ...filter, pageSize: 500, ...(pageToken && { pageToken }) } }),
    });
    const { result, error } = (await response.json()) as {
      result?: { data: NotificationItem[]; pageToken?: string };
      error?: unknown;
    };
    if (!result) throw new Error(`The read-back failed: ${response.status} ${JSON.stringify(error)}`);
    items.push(...result.data);
    ({ pageToken } = result);
  } while (pageToken);
  return items;
}
