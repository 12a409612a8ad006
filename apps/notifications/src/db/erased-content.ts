import type { NotificationContent } from './entities/notification.entity';

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
