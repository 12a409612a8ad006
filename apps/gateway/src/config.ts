import { brokerSettings, callsSettings, processSettings } from '@app/runtime/settings/common-settings';
import { address, duration, integer, port, Settings } from '@app/runtime/settings/settings';

/** Configuration of the gateway. */
export class GatewayConfig extends Settings({
  ...processSettings,
  ...brokerSettings('gateway'),
  ...callsSettings,
  port: port('PORT', 3000, 'Port of the API.'),
  host: address(
    'HOST',
    '::',
    'Address of that port. `::` means all addresses of the machine, IPv4 included. `npm start` uses `127.0.0.1`.',
  ),
  requestTimeoutMs: integer(
    'REQUEST_TIMEOUT_MS',
    5000,
    { min: 100, max: 60_000 },
    'Milliseconds until a call whose outcome is unknown is answered with 504.',
  ),
  rateLimitPerSecond: integer(
    'RATE_LIMIT_PER_SECOND',
    1000,
    { min: 0, max: 1_000_000 },
    'Calls per second of one API key in one gateway process; 0 switches the limit off.',
  ),
  maxInFlight: integer(
    'MAX_IN_FLIGHT',
    1000,
    { min: 1, max: 100_000 },
    'Calls in flight in one gateway process; further ones are answered with 429. One queue may have 60 % of them, one API key 80 % of that. Choose about the number of calls that the process handles in a quarter of a second: then refusals stay quick under overload.',
  ),
  // The default is longer than that of most proxies (60 to 120 s), and shorter than that of routers that translate addresses (from 240 s).
  keepAliveTimeoutMs: duration(
    'KEEP_ALIVE_TIMEOUT',
    '125s',
    { max: '2h' },
    'How long an idle connection is kept. Longer than the proxy in front keeps it: that one must close first.',
  ),
  authStaleMaxMs: duration(
    'AUTH_STALE_MAX',
    '10m',
    { max: '24h' },
    'How long known credentials are still accepted while the users service is away.',
  ),
}) {}
