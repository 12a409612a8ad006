import { Users1795132800000 } from './migrations/1795132800000-users';
import { PublisherGrants1795219200000 } from './migrations/1795219200000-publisher-grants';
import { Access1795392000000 } from './migrations/1795392000000-access';
import { Memberships1795478400000 } from './migrations/1795478400000-memberships';
import { Outbox1795305600000 } from './migrations/1795305600000-outbox';
import { OutboxTrace1795824000000 } from './migrations/1795824000000-outbox-trace';
import { Removals1795910400000 } from './migrations/1795910400000-removals';
import { Departures1795996800000 } from './migrations/1795996800000-departures';
import { Erasures1796428800000 } from './migrations/1796428800000-erasures';
import { UsersByUser1796515200000 } from './migrations/1796515200000-users-by-user';
import { VersionTimes1796601600000 } from './migrations/1796601600000-version-times';
import { EndedMembers1796688000000 } from './migrations/1796688000000-ended-members';
import { ErasuresByKey1796774400000 } from './migrations/1796774400000-erasures-by-key';
import { Statistics1796860800000 } from './migrations/1796860800000-statistics';
import { UsersKey1796947200000 } from './migrations/1796947200000-users-key';
import { ReversedKey1797033600000 } from './migrations/1797033600000-reversed-key';
import { OneUsersKey1797120000000 } from './migrations/1797120000000-one-users-key';
import { ErasureWalks1797206400000 } from './migrations/1797206400000-erasure-walks';

/** Database settings that all programs of this service share. */
export const DATABASE = {
  schema: 'users',
  migrations: [
    Users1795132800000,
    PublisherGrants1795219200000,
    Outbox1795305600000,
    Access1795392000000,
    Memberships1795478400000,
    OutboxTrace1795824000000,
    Removals1795910400000,
    Departures1795996800000,
    Erasures1796428800000,
    UsersByUser1796515200000,
    VersionTimes1796601600000,
    EndedMembers1796688000000,
    ErasuresByKey1796774400000,
    Statistics1796860800000,
    UsersKey1796947200000,
    ReversedKey1797033600000,
    OneUsersKey1797120000000,
    ErasureWalks1797206400000,
  ],
  // Allowed, because each statement has a matching index. Otherwise PostgreSQL plans a call with few users each time, which takes longer than the rest.
  genericPlans: true,
};
