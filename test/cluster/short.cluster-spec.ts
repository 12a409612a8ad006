import { describeRows } from './harness/describe-rows';

/**
 * The short selection for npm test: nothing acknowledged is lost, and reads go on while the broker is away. Set-up has put the leader of the
 * commands and the queues of queries on the same broker. Other pauses are not checked, because the machine may be busy.
 */
describeRows(
  'a cluster, the short pass',
  [{ name: 'SIGKILL of the broker with the leader, in short', fault: 'killLeaderOnly', pauseOfGetsMs: 10_000 }],
  true,
  {
    gateways: 1,
    users: 1,
    writers: 2,
    standby: false,
    fsync: false,
  },
);
