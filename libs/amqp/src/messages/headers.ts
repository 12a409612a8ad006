/** Headers of a command that a service publishes again. Services and the tool of dead letters write them, and believe nobody else's. */
export const OURS = {
  attempt: 'x-attempt',
  crashes: 'x-crashes',
  routingKey: 'x-routing-key',
  correlationId: 'x-correlation-id',
  originUser: 'x-origin-user',
  firstFailedAt: 'x-first-failed-at',
  lane: 'x-lane',
  deadReason: 'x-dead-reason',
  deadStatus: 'x-dead-status',
  deadSize: 'x-dead-size',
  deadHash: 'x-dead-sha256',
} as const;

/** Names of the AMQP headers. */
export const HEADER = {
  // Headers of a command or query.
  apiKey: 'x-api-key',
  requestId: 'x-request-id',
  deadline: 'x-deadline',
  idempotencyKey: 'x-idempotency-key',
  replyBatches: 'x-reply-batches',
  traceparent: 'traceparent',
  tracestate: 'tracestate',
  // Headers of a reply.
  status: 'x-status',
  ...OURS,
} as const;
