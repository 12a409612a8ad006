import { processPanels, quantile, servicePanels } from './process-panels.mjs';
import { prometheusRules } from './prometheus-rule.mjs';

/** @typedef {import('./process-panels.mjs').Panel} Panel */

// A shared Prometheus has metrics and alerts of others.
const SERVICES = 'job=~"gateway|users|notifications"';
const PROCESSES = 'job=~"gateway|users|notifications|operator"';
const OF_NOTIFICATIONS = '{job="notifications"}';
const ALERTS = prometheusRules().groups.flatMap(({ rules }) => rules.flatMap(({ alert = [] }) => alert));
const OWN_ALERTS = [...new Set(ALERTS)].join('|');

/** @type {Panel[]} */
const SYSTEM = [
  {
    title: 'Alerts',
    queries: [[`sum by (alertname) (ALERTS{alertstate="firing",alertname=~"${OWN_ALERTS}"})`, '{{alertname}}']],
  },
  { title: 'Processes that answer', queries: [[`sum by (job) (up{${SERVICES}})`, '{{job}}']] },
  {
    title: 'Dependencies that are away',
    queries: [[`sum by (job, dependency) (dependency_up{${SERVICES}} == bool 0)`, '{{job}}: {{dependency}}']],
  },
  { title: 'Calls by status', unit: 'reqps', queries: [['sum by (status) (route:http_requests:rate5m)', '{{status}}']] },
  { title: 'Share of calls that fail', unit: 'percentunit', queries: [['gateway:http_requests_failed:ratio_rate5m', '5xx']] },
  { title: 'Duration of calls, 99 %', unit: 's', queries: [['route:http_request_seconds:p99_rate5m', '{{route}}']] },
  {
    title: 'Duration of deliveries, 99 %',
    unit: 's',
    queries: [['pattern:rabbitmq_delivery_seconds:p99_rate5m', '{{pattern}}']],
  },
  { title: 'Messages that wait, by queue', queries: [['queue:queue_messages:max > 0', '{{queue}}']] },
  {
    title: 'Queues, share of their limit',
    unit: 'percentunit',
    queries: [['queue:queue_messages:of_limit > 0.01', '{{queue}}']],
  },
  {
    title: 'Age of commands at their turn, 90 %',
    unit: 's',
    queries: [[quantile('queue', 'rabbitmq_command_age_seconds', '{job=~"users|notifications"}', 0.9), '{{queue}}']],
    about: 'By the clocks of their publishers.',
  },
  {
    title: 'Letters that wait for an operator',
    queries: [['queue:queue_messages:max{queue=~".+\\\\.(dead|crashed|refused)"}', '{{queue}}']],
    about: 'npm run dead-letters -- list',
  },
  {
    title: 'Age of the oldest event in the outbox',
    unit: 's',
    queries: [['max by (job) (outbox_oldest_seconds{job=~"users|notifications"})', '{{job}}']],
  },
  {
    title: 'Age of the oldest erasure',
    unit: 's',
    queries: [['max by (job) (erasure_oldest_seconds{job=~"users|notifications"})', '{{job}}']],
  },
  { title: 'Lag of the copy, 90 %', unit: 's', queries: [['type:copy_lag_seconds:p90_rate5m', '{{type}}']] },
  {
    title: 'Starts of processes',
    queries: [[`sum by (job) (changes(process_start_time_seconds{${PROCESSES}}[15m]))`, '{{job}}']],
  },
  { title: 'Versions', queries: [[`count by (service, version) (build_info{${PROCESSES}})`, '{{service}} {{version}}']] },
];

/** @type {Panel[]} */
const GATEWAY = [
  {
    title: 'Calls by route',
    unit: 'reqps',
    queries: [['sum by (route) (rate(http_request_seconds_count{job="gateway"}[5m]))', '{{route}}']],
  },
  {
    title: 'Errors by status',
    unit: 'reqps',
    queries: [['sum by (error) (rate(gateway_errors_total{job="gateway"}[5m]))', '{{error}}']],
  },
  {
    title: 'Errors by route',
    unit: 'reqps',
    queries: [['sum by (route, error) (rate(gateway_errors_total{job="gateway"}[5m]))', '{{route}} {{error}}']],
  },
  {
    title: 'Duration, 50 %',
    unit: 's',
    queries: [[quantile('route', 'http_request_seconds', '{job="gateway",route=~"/v1/.*"}', 0.5), '{{route}}']],
  },
  { title: 'Duration, 99 %', unit: 's', queries: [['route:http_request_seconds:p99_rate5m', '{{route}}']] },
  {
    title: 'Wait for the services, 99 %',
    unit: 's',
    queries: [[quantile('message', 'rabbitmq_call_seconds', '{job="gateway"}'), '{{message}}']],
  },
  {
    title: 'Calls in flight',
    queries: [
      ['sum by (instance, kind) (gateway_calls_in_flight{job="gateway"})', '{{instance}} {{kind}}'],
      ['max(gateway_calls_in_flight_limit{job="gateway"})', 'limit of one process'],
    ],
  },
  {
    title: 'Bytes of bodies and answers',
    unit: 'bytes',
    queries: [
      ['sum by (instance) (gateway_arriving_bytes{job="gateway"})', '{{instance}} arriving'],
      ['max(gateway_arriving_limit_bytes{job="gateway"})', 'limit of arriving'],
      ['sum by (instance) (gateway_waiting_bytes{job="gateway"})', '{{instance}} waiting'],
      ['max(gateway_waiting_limit_bytes{job="gateway"})', 'limit of waiting'],
    ],
  },
  {
    title: 'Refused by limit',
    unit: 'reqps',
    queries: [['sum by (limit) (rate(gateway_rate_limited_total{job="gateway"}[5m]))', '{{limit}}']],
  },
  {
    title: 'Credentials',
    unit: 'reqps',
    queries: [['sum by (source) (rate(gateway_authentications_total{job="gateway"}[5m]))', '{{source}}']],
  },
  {
    title: 'Connections of clients',
    queries: [
      ['sum by (instance) (gateway_connections{job="gateway"})', '{{instance}}'],
      ['max(gateway_connections_limit{job="gateway"})', 'limit'],
      ['sum by (reason) (rate(gateway_connections_closed_total{job="gateway"}[5m]))', 'closed a second: {{reason}}'],
      ['sum(rate(gateway_connections_refused_total{job="gateway"}[5m]))', 'refused a second'],
    ],
  },
  {
    title: 'Calls to the services that wait',
    queries: [
      ['sum by (instance) (rabbitmq_calls_pending{job="gateway"})', '{{instance}}'],
      ['max(rabbitmq_calls_pending_limit{job="gateway"})', 'limit'],
    ],
  },
  {
    title: 'Commands in one message',
    queries: [
      [
        'sum(rate(rabbitmq_commands_per_message_sum{job="gateway"}[5m])) / sum(rate(rabbitmq_commands_per_message_count{job="gateway"}[5m]))',
        'mean',
      ],
    ],
  },
  {
    title: 'Queries asked again',
    unit: 'reqps',
    queries: [['sum by (reason) (rate(rabbitmq_queries_repeated_total{job="gateway"}[5m]))', '{{reason}}']],
  },
  {
    title: 'Messages returned and refused by the broker',
    unit: 'reqps',
    queries: [
      ['sum by (exchange) (rate(rabbitmq_returned_total{job="gateway"}[5m]))', 'returned: {{exchange}}'],
      ['sum by (exchange) (rate(rabbitmq_nacked_total{job="gateway"}[5m]))', 'refused: {{exchange}}'],
    ],
  },
  ...processPanels('gateway'),
];

/** @type {Panel[]} */
const NOTIFICATIONS = [
  ...servicePanels('notifications'),
  {
    title: 'Notifications in a commit',
    queries: [
      [quantile('job', 'notification_batch_size', OF_NOTIFICATIONS, 0.5), '50 %'],
      [quantile('job', 'notification_batch_size', OF_NOTIFICATIONS), '99 %'],
    ],
  },
  {
    title: 'Duration of a batch',
    unit: 's',
    queries: [
      [quantile('job', 'notification_batch_seconds', OF_NOTIFICATIONS, 0.5), '50 %'],
      [quantile('job', 'notification_batch_seconds', OF_NOTIFICATIONS), '99 %'],
    ],
  },
  {
    title: 'Notifications that wait for a batch',
    queries: [['sum by (instance) (notification_writer_waiting{job="notifications"})', '{{instance}}']],
  },
  { title: 'Lag of the copy, 90 %', unit: 's', queries: [['type:copy_lag_seconds:p90_rate5m', '{{type}}']] },
  {
    title: 'Hits of caches',
    unit: 'percentunit',
    queries: [
      [
        'sum by (cache) (rate(cache_lookups_total{job="notifications",result="hit"}[5m])) / sum by (cache) (rate(cache_lookups_total{job="notifications"}[5m]))',
        '{{cache}}',
      ],
    ],
  },
  {
    title: 'Deleted because of age',
    queries: [['sum(rate(retention_deleted_total{job="notifications"}[5m]))', 'a second']],
  },
  ...processPanels('notifications'),
];

/** Every dashboard by the name of its file. @type {Record<string, { title: string, panels: Panel[] }>} */
export const DASHBOARDS = {
  system: { title: 'Collaboration backend', panels: SYSTEM },
  gateway: { title: 'Collaboration backend: gateway', panels: GATEWAY },
  users: { title: 'Collaboration backend: users', panels: [...servicePanels('users'), ...processPanels('users')] },
  notifications: { title: 'Collaboration backend: notifications', panels: NOTIFICATIONS },
};
