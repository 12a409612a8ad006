import { cutAfterCommit, expireUnconsumed, killServer, killWriters, killWritersOfBacklog } from './harness/faults';
import { describeFaults } from './harness/run-fault';

/** The short selection for npm test: the faults that a change breaks most easily, once each. */
describeFaults('faults, the short pass', [
  killWriters(3, 100),
  killWritersOfBacklog(3000, 3),
  cutAfterCommit(2),
  expireUnconsumed(5000),
  killServer('database', 'PostgreSQL', 1),
  killServer('broker', 'the broker', 1),
]);
