import { describeRows } from './harness/describe-rows';

/** The short selection for npm test: nothing acknowledged is lost. Pauses are not checked, because the machine may be busy. */
describeRows(
  'a cluster, the short pass',
  [{ name: 'SIGKILL of the broker with the leader, in short', fault: 'killLeaderOnly' }],
  {
    gateways: 1,
    users: 1,
    writers: 2,
    standby: false,
    fsync: false,
  },
);
