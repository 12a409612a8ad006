export type Data = Record<string, unknown>;

/**
 * A request of notifications/update, made of all its fields. One of the two forms: single notifications, each once, with no user in both lists; or
 * everything of a user.
 */
export function updateOf({ notifications, readUpTo, userId: _, ...others }: Data, userId: string, upTo: boolean): Data {
  if (upTo || !notifications) return { organizationId: others.organizationId, userId, readUpTo: readUpTo ?? 0 };
  const items = notifications as { id: string; readByUserIds?: string[]; unreadByUserIds?: string[] }[];
  const once = [...new Map(items.map((item) => [item.id, item])).values()];
  return {
    ...others,
    notifications: once.map(({ unreadByUserIds, ...item }) => ({
      ...item,
      ...(unreadByUserIds && { unreadByUserIds: unreadByUserIds.filter((user) => !item.readByUserIds?.includes(user)) }),
    })),
  };
}

/** A request of notifications/delete. In an organization of its own, because the other cases read back what they add. */
export const deletionOf = ({ pageToken, ...others }: Data, organizationId: string): Data => ({
  ...others,
  organizationId,
  ...(!others.notificationIds && pageToken !== undefined && { pageToken }),
});

/** A request of users/data/delete. In an organization of its own, because the other cases read back what they add. */
export const erasureOf = (data: Data, organizationId: string): Data => ({ ...data, organizationIds: [organizationId] });
