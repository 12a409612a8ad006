import { Described, Identifiers, Success } from './fields';
import { USED_BEFORE } from './idempotency';
import { command, type Naming, type Refusal, type Sent } from './message';
import { refuseMisspelt } from './misspelt';

/** Most users of one call. Each is searched for in all notifications of the tenant. */
export const MOST_ERASED = 100;

/** Most pairs of a user and an organization in which the user is known. One statement blanks all of them. */
const MOST_ERASED_PAIRS = 5000;

export const TOO_MANY_PAIRS = `These users are in more than ${MOST_ERASED_PAIRS} organizations together; nothing was erased. Send fewer userIds, or organizationIds.`;

export class EraseUsersRequest {
  @Identifiers('Users whose data is erased. A userId that occurs twice counts once.', { min: 1, max: MOST_ERASED })
  userIds: string[];

  @Identifiers('Only in these organizations. Absent: in all organizations of the API key.', { min: 1, optional: true })
  organizationIds?: string[];

  static refuse(_: EraseUsersRequest, sent: Sent, named: Naming): Refusal | undefined {
    return refuseMisspelt(EraseUsersRequest, sent, named);
  }
}

export class EraseUsersResult {
  @Success()
  status: 'success';

  @Described({ type: 'string', description: 'Always `Data deletion process has been initiated.`' })
  message: string;

  @Described({ type: 'object', description: 'Always empty.' })
  data: Record<string, never>;
}

const RESULT: EraseUsersResult = {
  status: 'success',
  message: 'Data deletion process has been initiated.',
  data: {},
};

export const EraseUsers = command('users.erase.v1', EraseUsersRequest, EraseUsersResult, {
  open: true,
  changesRows: true,
  purpose:
    'Erases the data of users: details, memberships and read state. Notifications stay, but no longer name them. A success means that the users service shows nothing of them any more, and that the rest is certain to follow: `user.data-deleted.v1` says when it is done. Texts of notifications are not searched.',
  example: { request: { userIds: ['nobody'] }, result: RESULT },
  errors: {
    FAILED_PRECONDITION: USED_BEFORE,
    INVALID_ARGUMENT: {
      when: `The users are in more than ${MOST_ERASED_PAIRS} organizations together.`,
      message: TOO_MANY_PAIRS,
    },
  },
  http: {
    path: '/v1/users/data/delete',
    summary: 'Erase the data of users',
    effect:
      'Erases the data of up to 100 users, in all organizations or in `organizationIds`: details, memberships, read state, and their names in notifications.',
    goodToKnow:
      'Lists and access show nothing of them at once. The event `user.data-deleted.v1` says that nothing is left. Texts of notifications are not searched. [docs/personal-data.md](docs/personal-data.md) has what is stored of a person.',
    description: `Erases what is stored of users, in all organizations of the API key or only in \`organizationIds\`. Users who are not known are
accepted, because notifications may name them.

An answer of 200 means that contact lists, access checks and \`users/get\` show nothing of the users any more. The rest follows within seconds
to minutes, also when processes end meanwhile:

- their memberships and their read state are gone;
- notifications no longer have them in \`notifyUsers\`;
- \`actionUser\`, and each user of \`displayHeadlineMessageTemplateData\`, gets the userId \`erased\`, and no name and no e-mail address, where it is one of them.

The event \`user.data-deleted.v1\` is the proof that this is complete. Ids, texts and \`notificationSourceData\` of notifications stay: delete
notifications whose texts name a person. A user may be added again at once; what is stored half a second after the call, or later, stays. Only marks
as read of older notifications are lost until \`user.data-deleted.v1\`.`,
    idempotent: true,
    examples: {
      request: {
        everywhere: { summary: 'In all organizations', value: { userIds: ['ada'] } },
        one: { summary: 'In one organization', value: { userIds: ['ada', 'grace'], organizationIds: ['acme'] } },
      },
      result: { initiated: { summary: 'The erasure is certain to happen', value: RESULT } },
    },
  },
});
