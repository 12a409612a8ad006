import { cutAfterCommit, expireUnconsumed, killServer, killWriters, killWritersOfBacklog } from './harness/faults';
import { describeFaults } from './harness/run-fault';

/** The short selection for npm test: the faults that a change breaks most easily, once each. */
describeFaults('faults, the short pass', [
  killWriters(1, 100),
  killWritersOfBacklog(1000, 1),
  cutAfterCommit(1),
  expireUnconsumed(4000),
  killServer('database', 'PostgreSQL', 1),
  killServer('broker', 'the broker', 1),
]);
