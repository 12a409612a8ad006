import { Counter, Gauge, Histogram } from 'prom-client';

export const requestSeconds = new Histogram({
  name: 'http_request_seconds',
  help: 'HTTP requests from their headers to the end of the response. Status 499: the client left before. Without those refused unread.',
  labelNames: ['route', 'status'],
  buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
});

export const callsInFlight = new Gauge({
  name: 'gateway_calls_in_flight',
  help: 'Calls between the end of their body and the end of their response.',
});

export const bytesArriving = new Gauge({
  name: 'gateway_bytes_arriving',
  help: 'Bytes of large bodies that are being read: as many as they may have.',
});

export const rateLimited = new Counter({
  name: 'gateway_rate_limited_total',
  help: "Calls answered with 429, by the limit they met: their key's rate, or the process's calls in flight (in_flight) or large bodies on their way (arriving).",
  labelNames: ['limit'],
});

export const authentications = new Counter({
  name: 'gateway_authentications_total',
  help: 'Credentials looked up, by where the answer came from: hit and stale: the cache; miss: a first question; renewal: a repeated one; unavailable: nowhere.',
  labelNames: ['source'],
});

export const connectionsRefused = new Counter({
  name: 'gateway_connections_refused_total',
  help: 'Connections closed unread, because too many were open.',
});
