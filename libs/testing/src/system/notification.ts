/** The least `data` of notifications/add, with differences. */
export const notification = (differences: object = {}) => ({
  organizationId: 'org',
  documentId: 'doc',
  actionUser: { userId: 'actor' },
  displayHeadlineMessageTemplate: 'Hello',
  ...differences,
});
