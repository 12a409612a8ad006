import { createHash } from 'node:crypto';

const ADA = { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' };
const GRACE = { userId: 'grace', name: 'Grace Hopper', email: 'grace@example.com' };

interface Example {
  summary: string;
  value: object;
}

const request = (summary: string, data: object): Example => ({ summary, value: { data } });
const answer = (summary: string, result: object): Example => ({ summary, value: { result } });

const added = (userId: string) => [
  userId,
  { success: true, id: createHash('md5').update(userId).digest('hex'), message: 'User added.' },
];

const HEADLINE = {
  displayHeadlineMessageTemplate: '{actionUser} mentioned {recipientUser} in {place}',
  displayHeadlineMessageTemplateData: { actionUser: ADA, recipientUser: GRACE, place: 'the roadmap' },
  displayBodyMessage: 'Please have a look.',
};

export const ADD_USERS = {
  request: {
    document: request('To a document', { organizationId: 'acme', documentId: 'roadmap', users: [ADA, GRACE] }),
    folder: request('To a folder', { organizationId: 'acme', folderId: 'plans', users: [GRACE] }),
    organization: request('To the organization', { organizationId: 'acme', users: [{ ...ADA, initial: 'A' }] }),
  },
  answer: {
    added: answer('Both users are stored', {
      status: 'success',
      message: 'User(s) processed successfully.',
      data: Object.fromEntries([added('ada'), added('grace')]) as object,
    }),
  },
};

export const ADD_NOTIFICATION = {
  request: {
    mention: request('To the named users', {
      organizationId: 'acme',
      documentId: 'roadmap',
      actionUser: ADA,
      ...HEADLINE,
      notifyUsers: [GRACE],
    }),
    everyone: request('To all users with access to the document', {
      organizationId: 'acme',
      documentId: 'roadmap',
      locationId: 'chapter-2',
      actionUser: ADA,
      displayHeadlineMessageTemplate: '{actionUser} finished the chapter',
      notifyAll: true,
    }),
    identified: request('With its own id: may be repeated', {
      organizationId: 'acme',
      documentId: 'roadmap',
      notificationId: 'release-1.0',
      actionUser: ADA,
      displayHeadlineMessageTemplate: '{actionUser} released {version}',
      displayHeadlineMessageTemplateData: { version: '1.0' },
      notificationSourceData: { release: { version: '1.0', notes: ['first'] } },
    }),
  },
  answer: {
    added: answer('The notification is stored', {
      status: 'success',
      message: 'Notification added successfully.',
      data: { success: true, message: 'Notification added successfully.' },
    }),
  },
};

export const GET_NOTIFICATIONS = {
  request: {
    user: request('Of a user in a document', { organizationId: 'acme', documentId: 'roadmap', userId: 'grace' }),
    page: request('Of a document, oldest first, in pages', {
      organizationId: 'acme',
      documentId: 'roadmap',
      order: 'asc',
      pageSize: 50,
    }),
    identified: request('By their ids', { organizationId: 'acme', documentId: 'roadmap', notificationIds: ['release-1.0'] }),
  },
  answer: {
    found: answer('One notification', {
      status: 'success',
      message: 'Notification(s) retrieved successfully.',
      data: [
        {
          id: '0b6d4c0e-7f43-4a57-9d8c-2f9b1a3c5e70',
          notificationSource: 'custom',
          notificationSourceData: {},
          actionUser: ADA,
          ...HEADLINE,
          metadata: { apiKey: 'demo-key', organizationId: 'acme', documentId: 'roadmap' },
          notifyUsers: { grace: true },
          notifyUsersByUserId: { grace: true },
          timestamp: 1767225600000,
        },
      ],
    }),
    nothing: answer('Nothing found', { status: 'success', message: 'Notification(s) retrieved successfully.', data: [] }),
  },
};
