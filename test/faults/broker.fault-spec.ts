import { alarm, endConnections, fullQueue, malformedMessages, recreateExchange, recreateQueue } from './harness/broker-faults';
import { describeFaults } from './harness/run-fault';

describeFaults('the broker', [
  recreateQueue(5),
  endConnections(5),
  recreateExchange(3),
  alarm('memory', 4000),
  alarm('disk', 4000),
  fullQueue(20),
  malformedMessages(10_000),
]);
