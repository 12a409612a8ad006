import {
  badWeather,
  cutAnywhere,
  cutAfterCommit,
  cutAfterPublish,
  cutBeforeAck,
  dropReplies,
  findBlackHoles,
  stall,
} from './harness/faults';
import { describeFaults } from './harness/run-fault';

describeFaults('links', [
  cutAfterCommit(10),
  cutAfterCommit(5, 'a deletion'),
  cutAfterCommit(5, '"mark as read"'),
  cutBeforeAck(10),
  dropReplies(10),
  cutAfterPublish(10),
  stall('the gateway and the broker', 6000, ({ gateway }) => [gateway.toBroker]),
  stall('a writer and the broker', 6000, ({ writers }) => writers.slice(0, 1).map((writer) => writer.toBroker)),
  stall('the writers and PostgreSQL', 6000, ({ writers }) => writers.flatMap((writer) => writer.toDatabase ?? [])),
  stall('the writers and PostgreSQL', 6000, ({ writers }) => writers.flatMap((writer) => writer.toDatabase ?? []), 'lose'),
  stall('users and PostgreSQL', 6000, ({ users }) => [users.toDatabase ?? []].flat(), 'lose'),
  findBlackHoles,
  badWeather(10),
  cutAnywhere(40),
]);
