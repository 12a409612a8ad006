import { greedyTenant, slowConnections } from './harness/client-faults';
import { describeFaults } from './harness/run-fault';

const LIMIT = 200;

describeFaults('slow clients', [slowConnections(1000)], {
  // Fewer calls in flight than slow bodies.
  env: { gateway: { MAX_IN_FLIGHT: '250' } },
});

describeFaults('a greedy client', [greedyTenant(LIMIT, 10_000)], {
  env: { gateway: { RATE_LIMIT_PER_SECOND: String(LIMIT) } },
});
