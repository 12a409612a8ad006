import { killEverything, killGateway, killServer, killWriters, killWritersOfBacklog } from './harness/faults';
import { describeFaults } from './harness/run-fault';

describeFaults('killed processes', [
  killWriters(20, 300),
  killWritersOfBacklog(40_000, 10),
  killGateway(5),
  killServer('broker', 'the broker', 3),
  killServer('database', 'PostgreSQL', 5),
  killEverything(2),
]);
