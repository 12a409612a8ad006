import { killEverything, killGateway, killServer, killWriters, killWritersOfBacklog } from './harness/faults';
import { describeFaults } from './harness/run-fault';

describeFaults('killed processes', [
  { ...killWriters(20, 300), name: 'SIGKILL of a writer, 20 times, at up to 300 calls a second', perStart: true },
  killWritersOfBacklog(40_000, 10),
  killGateway(5),
  killServer('broker', 'the broker', 3),
  killServer('database', 'PostgreSQL', 5),
  killEverything(2),
]);
