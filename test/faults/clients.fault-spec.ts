import { greedyTenant, slowConnections } from './client-faults';
import { describeFaults } from './run-fault';

const LIMIT = 200;

describeFaults('clients', [slowConnections(1000), greedyTenant(LIMIT, 10_000)], {
  // Fewer calls in flight than slow bodies.
  env: { gateway: { RATE_LIMIT_PER_SECOND: String(LIMIT), MAX_IN_FLIGHT: '250' } },
});
