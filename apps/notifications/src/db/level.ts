import type { CopiedMembership } from './members.repository';

/** The level at which users were added or removed. */
export function levelOf({ documentId, folderId }: { documentId?: string; folderId?: string }): CopiedMembership {
  if (documentId !== undefined) return { level: 'document', id: documentId };
  if (folderId !== undefined) return { level: 'folder', id: folderId };
  return { level: 'organization', id: '' };
}
