import { killEverything, killGateway, killServer, killWriters, killWritersOfBacklog } from './faults';
import { describeFaults } from './run-fault';

describeFaults('killed processes', [
  killWriters(20, 300),
  killWritersOfBacklog(40_000, 10),
  killGateway(5),
  killServer('broker', 'the broker', 3),
  killServer('database', 'PostgreSQL', 5),
  killEverything(2),
]);
