/** Target of memberships: the organization itself, or only one of its folders or documents. */
export type Level = { of: 'organization' } | { of: 'folder' | 'document'; id: string };

/** Tables of memberships, one for each level. */
export const MEMBER_TABLES = ['organization_members', 'folder_members', 'document_members'] as const;

/** The narrowest given level counts: users added to a document are not added to its folder. */
export function levelOf({ documentId, folderId }: { documentId?: string; folderId?: string }): Level {
  if (documentId !== undefined) return { of: 'document', id: documentId };
  if (folderId !== undefined) return { of: 'folder', id: folderId };
  return { of: 'organization' };
}
