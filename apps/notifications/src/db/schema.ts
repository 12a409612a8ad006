import { Covering1795651200000 } from './migrations/1795651200000-covering';
import { Members1795478400000 } from './migrations/1795478400000-members';
import { Notifications1795132800000 } from './migrations/1795132800000-notifications';
import { Outbox1795305600000 } from './migrations/1795305600000-outbox';
import { Retention1795564800000 } from './migrations/1795564800000-retention';
import { Statistics1795737600000 } from './migrations/1795737600000-statistics';
import { EventTypes1795824000000 } from './migrations/1795824000000-event-types';
import { Deletions1796169600000 } from './migrations/1796169600000-deletions';
import { DeletedNotifications1796256000000 } from './migrations/1796256000000-deleted-notifications';
import { ReadState1796342400000 } from './migrations/1796342400000-read-state';
import { Erasures1796428800000 } from './migrations/1796428800000-erasures';
import { VersionTimes1796601600000 } from './migrations/1796601600000-version-times';
import { EndedMembers1796688000000 } from './migrations/1796688000000-ended-members';
import { OpenErasures1796774400000 } from './migrations/1796774400000-open-erasures';
import { Removals1795910400000 } from './migrations/1795910400000-removals';
import { LiveMembers1795996800000 } from './migrations/1795996800000-live-members';

/** Database settings that all programs of this service share. */
export const DATABASE = {
  schema: 'notifications',
  migrations: [
    Notifications1795132800000,
    Outbox1795305600000,
    Members1795478400000,
    Retention1795564800000,
    Covering1795651200000,
    Statistics1795737600000,
    EventTypes1795824000000,
    Removals1795910400000,
    LiveMembers1795996800000,
    Deletions1796169600000,
    DeletedNotifications1796256000000,
    ReadState1796342400000,
    Erasures1796428800000,
    VersionTimes1796601600000,
    EndedMembers1796688000000,
    OpenErasures1796774400000,
  ],
  // Checks of existence rely on what was found once: see docs/design.md.
  undeletable: ['organizations', 'documents'],
  // Allowed, because each statement has a matching index.
  genericPlans: true,
};
