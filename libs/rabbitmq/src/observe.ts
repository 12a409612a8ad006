import { Logger } from '@nestjs/common';
import type { Observer } from '@app/amqp/connection/observer';
import type { TransportMetrics } from './metrics';
import { tracePublication } from './spans';

/** Observer of the services: logs with Nest's logger and counts in the metrics. */
export function observe(metrics: TransportMetrics): Observer {
  const logger = new Logger('RabbitMQ');
  return {
    log: (level, fields) => logger[level === 'info' ? 'log' : level](fields),
    reconnecting: (connection) => metrics.reconnects.inc({ connection }),
    // Only the preferred address is missed, by an alert.
    connected: (connection, address, up, preferred) => {
      if (!up) metrics.connected.remove({ connection, address });
      metrics.connected.set({ connection, address: preferred }, 0);
      if (up) metrics.connected.set({ connection, address }, 1);
    },
    blocked: (connection, blocked) => metrics.blocked.set({ connection }, blocked ? 1 : 0),
    returned: (exchange) => metrics.returned.inc({ exchange }),
    nacked: (exchange) => metrics.nacked.inc({ exchange }),
    repeated: (message, reason) => metrics.queriesRepeated.inc({ message, reason }),
    sent: (exchange, commands, outcome) => {
      const { pattern } = commands[0].operation;
      outcome.then(
        () => metrics.commandsPerMessage.observe({ message: pattern }, commands.length),
        // Nothing was written.
        () => undefined,
      );
      tracePublication(exchange, commands, outcome);
    },
    pending: (connection, calls) => metrics.callsPending.set({ connection }, calls),
    unknownReply: () => metrics.unknownReplies.inc(),
  };
}
