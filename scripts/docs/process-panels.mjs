// Panels that several dashboards have.

/**
 * @typedef {object} Panel
 * @property {string} title
 * @property {string} [unit] of Grafana: s, bytes, percentunit, reqps, short
 * @property {[expression: string, legend: string][]} queries
 * @property {string} [about] shown as its description
 */

/** @param {string} by @param {string} name @param {string} where @param {number} [quantile] */
export const quantile = (by, name, where, quantile = 0.99) =>
  `histogram_quantile(${quantile}, sum by (${by}, le) (rate(${name}_bucket${where}[5m])))`;

/** Panels of every process. @param {string} job @returns {Panel[]} */
export const processPanels = (job) => [
  { title: 'Processor, in cores', queries: [[`rate(process_cpu_seconds_total{job="${job}"}[5m])`, '{{instance}}']] },
  {
    title: 'Memory',
    unit: 'bytes',
    queries: [
      [`process_resident_memory_bytes{job="${job}"}`, '{{instance}}'],
      [`nodejs_heap_size_used_bytes{job="${job}"}`, '{{instance}}: heap in use'],
    ],
  },
  {
    title: 'Delay of the event loop',
    unit: 's',
    queries: [[`nodejs_eventloop_lag_p99_seconds{job="${job}"}`, '{{instance}}']],
    about: 'Includes the interval of 50 ms at which it is measured.',
  },
  {
    title: 'Open files',
    queries: [
      [`process_open_fds{job="${job}"}`, '{{instance}}'],
      [`max(process_max_fds{job="${job}"})`, 'limit'],
    ],
  },
  { title: 'Log lines dropped', queries: [[`rate(log_lines_dropped_total{job="${job}"}[5m])`, '{{instance}}']] },
  {
    title: 'Connections to the broker',
    queries: [
      [`sum by (connection) (rabbitmq_connected{job="${job}"})`, '{{connection}}'],
      [`sum by (connection) (rate(rabbitmq_reconnects_total{job="${job}"}[5m]))`, '{{connection}}: again, a second'],
    ],
  },
];

/** Panels of a service with queues and a database. @param {string} job @returns {Panel[]} */
export const servicePanels = (job) => {
  const own = `{job="${job}"}`;
  return [
    {
      title: 'Deliveries by outcome',
      unit: 'reqps',
      queries: [[`sum by (outcome) (rate(rabbitmq_deliveries_total${own}[5m]))`, '{{outcome}}']],
    },
    {
      title: 'Deliveries with an error',
      unit: 'reqps',
      queries: [
        [`sum by (pattern, status) (rate(rabbitmq_deliveries_total{job="${job}",status!~"|OK"}[5m]))`, '{{pattern}} {{status}}'],
      ],
    },
    {
      title: 'Duration of deliveries, 99 %',
      unit: 's',
      queries: [[quantile('pattern', 'rabbitmq_delivery_seconds', own), '{{pattern}}']],
    },
    {
      title: 'Deliveries that run, and wait for their turn',
      queries: [
        [`sum by (kind) (rabbitmq_deliveries_running${own})`, '{{kind}} run'],
        [`sum by (kind) (rabbitmq_deliveries_running_limit${own})`, '{{kind}} limit'],
        [`sum by (kind) (rabbitmq_deliveries_waiting${own})`, '{{kind}} wait'],
      ],
    },
    {
      title: 'Unsettled deliveries',
      queries: [
        [`sum by (queue) (rabbitmq_deliveries_in_flight${own})`, '{{queue}}'],
        [`max by (queue) (rabbitmq_prefetch${own})`, '{{queue}} prefetch'],
      ],
    },
    {
      title: 'Redeliveries',
      unit: 'reqps',
      queries: [[`sum by (queue) (rate(rabbitmq_redeliveries_total${own}[5m]))`, '{{queue}}']],
    },
    { title: 'Messages that wait', queries: [[`max by (queue) (queue_messages${own})`, '{{queue}}']] },
    { title: 'Consumers', queries: [[`max by (queue) (queue_consumers${own})`, '{{queue}}']] },
    {
      title: 'Letters that cannot be moved',
      queries: [
        [`sum by (queue) (rabbitmq_letters_held${own})`, '{{queue}}'],
        [`max(rabbitmq_letters_held_limit${own})`, 'limit'],
      ],
    },
    {
      title: 'Connections to the database',
      queries: [
        [`sum by (instance, state) (database_pool_connections${own})`, '{{instance}} {{state}}'],
        [`max(database_pool_connections_limit${own})`, 'limit'],
        [`sum by (instance) (database_pool_waiting${own})`, '{{instance}} wait'],
      ],
    },
    {
      title: 'Servers of the database',
      queries: [
        [`max by (instance) (database_server${own})`, '{{instance}}: server'],
        [`sum by (server) (rate(database_connect_failures_total${own}[5m]))`, 'server {{server}}: failures a second'],
      ],
    },
    {
      title: 'Outbox',
      queries: [
        [`max(outbox_events${own})`, 'events'],
        [`max(outbox_oldest_seconds${own})`, 'age of the oldest, s'],
      ],
      about: 'outbox_events_limit: with as many events, commands wait.',
    },
    {
      title: 'Events published',
      unit: 'reqps',
      queries: [
        [`sum(rate(outbox_published_total${own}[5m]))`, 'published'],
        [`sum(rate(outbox_failures_total${own}[5m]))`, 'failed batches'],
        [`sum by (type) (rate(events_refused_total${own}[5m]))`, 'lost by a listener: {{type}}'],
      ],
    },
    {
      title: 'Erasures',
      queries: [
        [`max(erasure_oldest_seconds${own})`, 'age of the oldest, s'],
        [`sum(rate(erasure_failures_total${own}[5m]))`, 'failed steps a second'],
      ],
    },
    {
      title: 'Old rows',
      queries: [
        [`sum(rate(memberships_deleted_total${own}[5m]))`, 'ended memberships deleted a second'],
        [`sum(rate(retention_failures_total${own}[5m]))`, 'failures to delete a second, of any kind'],
      ],
      about: 'Memberships are deleted 30 to 32 days after their end.',
    },
  ];
};
