import { setImmediate as immediate } from 'node:timers/promises';
import type { NotificationContent } from './notification-content';

/** Characters of content after which the event loop may run the calls of others: they wait some milliseconds, not the time of a whole step. */
const CHARACTERS_AT_A_TIME = 128 * 1024;

/** A stored notification. */
export interface Hit {
  id: string;
  /** JSON text. */
  content: string;
}

/** The notifications whose contents change, with the next content of each. Other work runs in between. */
export async function changesOf(hits: readonly Hit[], userIds: ReadonlySet<string>): Promise<(Hit & { next: string })[]> {
  const changes: (Hit & { next: string })[] = [];
  let characters = 0;
  for (const { id, content } of hits) {
    const next = withoutUsers(content, userIds);
    if (next !== undefined) changes.push({ id, content, next });
    characters += content.length;
    if (characters < CHARACTERS_AT_A_TIME) continue;
    characters = 0;
    await immediate();
  }
  return changes;
}

/** Replaces an erased user where a notification needs a user. */
const ERASED = { userId: 'erased' };

/**
 * The content of a notification without erased users, as JSON text. They are no longer notified. The user who caused the notification, and each user
 * among the values of the template, becomes {@link ERASED}. Texts and source data are not searched.
 *
 * @returns undefined when nothing is to be changed
 */
export function withoutUsers(json: string, userIds: ReadonlySet<string>): string | undefined {
  const content = JSON.parse(json) as NotificationContent;
  const isErased = (value: unknown) =>
    typeof value === 'object' && value !== null && 'userId' in value && userIds.has(value.userId as string);
  const { actionUser, notifyUsers, displayHeadlineMessageTemplateData: data } = content;
  const values = Object.entries(data ?? {});
  if (!isErased(actionUser) && !notifyUsers.some(isErased) && !values.some(([, value]) => isErased(value))) return undefined;
  return JSON.stringify({
    ...content,
    actionUser: isErased(actionUser) ? ERASED : actionUser,
    notifyUsers: notifyUsers.filter((user) => !isErased(user)),
    ...(data && {
      // fromEntries() creates own properties, even for a name like `__proto__`.
      displayHeadlineMessageTemplateData: Object.fromEntries(
        values.map(([name, value]) => [name, isErased(value) ? ERASED : value]),
      ),
    }),
  });
}
