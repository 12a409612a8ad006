import { System } from '@app/testing/system/system';
import { notifyAllReaches } from './operations/access.cases-spec';
import { directPublisher } from './operations/direct-publisher.cases-spec';
import { membershipsEnd } from './operations/memberships.cases-spec';
import { metricsOfProcesses } from './operations/metrics.cases-spec';
import { notificationsAdd } from './operations/notifications-add.cases-spec';
import { inbox } from './operations/inbox.cases-spec';
import { notificationsDelete } from './operations/notifications-delete.cases-spec';
import { notificationsGet } from './operations/notifications-get.cases-spec';
import { operatorsPage } from './operations/operators-page.cases-spec';
import { usersAdd } from './operations/users-add.cases-spec';
import { usersDataDelete } from './operations/users-data-delete.cases-spec';

/** One system for all: none of them stops a process, and each has organizations of its own. */
describe('the operations', () => {
  let system: System;
  const running = () => system;
  beforeAll(async () => {
    system = await System.start();
  });
  afterAll(() => system?.stop());

  usersAdd(running);
  notificationsAdd(running);
  notificationsGet(running);
  notificationsDelete(running);
  inbox(running);
  notifyAllReaches(running);
  membershipsEnd(running);
  usersDataDelete(running);
  directPublisher(running);
  operatorsPage(running);
  metricsOfProcesses(running);
});
