import { Counter, Gauge, Histogram } from 'prom-client';
import type { ErrorStatus } from '@app/contracts/error';

export const requestSeconds = new Histogram({
  name: 'http_request_seconds',
  help: 'HTTP requests from their headers to the end of the response, without requests refused unread. Status 499: the client left earlier.',
  labelNames: ['route', 'status'],
  buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
});

export const errors = new Counter<'route' | 'error'>({
  name: 'gateway_errors_total',
  help: 'Answers with an error, by `error.status` and route. Route `refused`: by a limit, before the call was read, see gateway_rate_limited_total.',
  labelNames: ['route', 'error'],
});

/** Counts an answer with an error. @param route the pattern of a route of this process, never a path of a caller */
export const countError = (route: string, error: ErrorStatus): void => errors.inc({ route, error });

export const callsInFlight = new Gauge({
  name: 'gateway_calls_in_flight',
  help: 'Calls between the end of their body and their answer, by their queue.',
  labelNames: ['kind'],
});

export const callsInFlightLimit = new Gauge({
  name: 'gateway_calls_in_flight_limit',
  help: 'Limit of calls in flight of all kinds: MAX_IN_FLIGHT. One kind may have 60 %, one key 80 % of that.',
});

export const callsWaiting = new Gauge({
  name: 'gateway_calls_waiting',
  help: 'Calls in flight that wait for their turn, because as many of their kind or key are at work as docs/limits.md and docs/shares.md allow.',
});

export const bytesArriving = new Gauge({
  name: 'gateway_arriving_bytes',
  help: 'Bytes of large bodies of calls that are arriving or in flight. A body counts with its declared length, or 1 MiB.',
});

export const bytesArrivingLimit = new Gauge({
  name: 'gateway_arriving_limit_bytes',
  help: 'As many of those as there may be. One key may have 80 %.',
});

export const bytesWaiting = new Gauge({
  name: 'gateway_waiting_bytes',
  help: 'Bytes of answers that are expected, or that their clients have not read yet.',
});

export const bytesWaitingLimit = new Gauge({
  name: 'gateway_waiting_limit_bytes',
  help: 'As many of those as there may be. One key may have 80 %.',
});

export const keyRateLimit = new Gauge({
  name: 'gateway_key_rate_limit',
  help: 'Calls a second that one key may make at this process: RATE_LIMIT_PER_SECOND. 0: any number.',
});

export const rateLimited = new Counter({
  name: 'gateway_rate_limited_total',
  help: 'Calls refused by a limit, with 429: rate of the key (rate), calls in flight of the kind (in_flight), bytes of bodies above 2 KiB (arriving), bytes of answers (waiting). With _share: the share of one key; arriving_share also counts its large bodies that had no turn in time. With 503: new credentials while many are being checked (credentials). Requests without known credentials while many of them wait, or while answers to them are not read (strangers).',
  labelNames: ['limit'],
});

export const authentications = new Counter({
  name: 'gateway_authentications_total',
  help: 'Checked credentials by source. hit and stale: the cache; miss: a first question; renewal: a repeated question; unavailable: no answer.',
  labelNames: ['source'],
});

export const strangersWaiting = new Gauge({
  name: 'gateway_strangers_waiting',
  help: 'Requests without known credentials that wait for a later iteration of the event loop.',
});

export const strangersWaitingLimit = new Gauge({
  name: 'gateway_strangers_waiting_limit',
  help: 'With as many waiting requests without known credentials, further ones are refused.',
});

export const bodyPauses = new Counter({
  name: 'gateway_body_pauses_total',
  help: 'Pauses in reading a connection, because its bodies came in many pieces of fewer than 256 bytes.',
});

export const connectionsOpen = new Gauge({ name: 'gateway_connections', help: 'Open connections of clients.' });

export const connectionsLimit = new Gauge({
  name: 'gateway_connections_limit',
  help: 'With as many open connections, the next one takes the place of an idle one, or is closed unread when none is idle.',
});

export const connectionsRefused = new Counter({
  name: 'gateway_connections_refused_total',
  help: 'Connections closed unread, because too many were open and none was idle.',
});

export const connectionsClosed = new Counter({
  name: 'gateway_connections_closed_total',
  help: 'Connections closed because of a limit: the client did not read its answers (unread), sent too many requests without waiting (pipelined), or sent a body in many small pieces without a proved API key, beside too many others (pieces). Its requests took most memory when those of all together took too much (memory). Or it was idle for longest when there were too many connections (idle).',
  labelNames: ['reason'],
});
