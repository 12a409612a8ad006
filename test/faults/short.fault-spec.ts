import { cutAfterCommit, expireUnconsumed, killServer, killWriters, killWritersOfBacklog } from './harness/faults';
import { describeFaults } from './harness/run-fault';

/** What npm test can afford: once each of the faults that a change breaks most easily. */
describeFaults('faults, the short pass', [
  killWriters(3, 100),
  killWritersOfBacklog(3000, 3),
  cutAfterCommit(2),
  expireUnconsumed(5000),
  killServer('database', 'PostgreSQL', 1),
  killServer('broker', 'the broker', 1),
]);
