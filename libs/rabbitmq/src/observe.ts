import { Logger } from '@nestjs/common';
import type { Observer } from '@app/amqp/observer';
import type { TransportMetrics } from './metrics';

/** Observer of the services: logs with Nest's logger and counts in the metrics. */
export function observe(metrics: TransportMetrics): Observer {
  const logger = new Logger('RabbitMQ');
  return {
    log: (level, fields) => logger[level === 'info' ? 'log' : level](fields),
    reconnecting: (connection) => metrics.reconnects.inc({ connection }),
    connected: (connection, address, up) => metrics.connected.set({ connection, address }, up ? 1 : 0),
    blocked: (connection, blocked) => metrics.blocked.set({ connection }, blocked ? 1 : 0),
    returned: (exchange) => metrics.returned.inc({ exchange }),
    nacked: (exchange) => metrics.nacked.inc({ exchange }),
    repeated: (message, reason) => metrics.queriesRepeated.inc({ message, reason }),
    sent: (message, commands) => metrics.commandsPerMessage.observe({ message }, commands),
    pending: (connection, calls) => metrics.callsPending.set({ connection }, calls),
    unknownReply: () => metrics.unknownReplies.inc(),
  };
}
