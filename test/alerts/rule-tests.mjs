// Made-up series with which promtool tests the rules, beside the recordings in deploy/observability/tests.
import { prometheusRules } from '../../scripts/docs/prometheus-rule.mjs';
import { firing, queueRuleTests } from './queue-rule-tests.mjs';

/** Tests of promtool, by name. @returns {Record<string, object[]>} */
export const ruleTests = () => ({
  link: linkTest(),
  'back-off': backOffTest(),
  rollout: rolloutTest(),
  unseen: unseenTest(),
  'lost-broker': lostBrokerTest(),
  'slow-calls': slowCallsTest(),
  'refused-connections': refusedConnectionsTest(),
  retention: retentionTest(),
  ...queueRuleTests(),
});

/** Whether an alert links to the runbooks at the address in the external label. */
function linkTest() {
  const runbooks = 'https://git.example.com/docs/runbooks';
  const up = ['users', 'notifications'].map((job) => ({ series: `up{job="${job}"}`, values: '1x20' }));
  const missing = prometheusRules().groups.flatMap(({ rules }) => rules.find(({ alert }) => alert === 'ServiceMissing') ?? [])[0];
  const exp_annotations = {
    ...missing.annotations,
    summary: 'No process of gateway answers.',
    runbook_url: `${runbooks}/ServiceMissing.md`,
  };
  const test = {
    external_labels: { runbooks },
    input_series: up,
    alert_rule_test: [
      {
        eval_time: '3m',
        alertname: 'ServiceMissing',
        exp_alerts: [{ exp_labels: { job: 'gateway', ...missing.labels }, exp_annotations }],
      },
    ],
  };
  return [test];
}

/**
 * Whether the alert stays while a process ends a minute after each start, and a platform waits longer and longer before the next one, at last five
 * minutes.
 */
function backOffTest() {
  const waits = [1, 1, 2, 3, 5, 10, ...Array(15).fill(20)];
  const starts = waits.map((wait, start) => `${start}+0x3 _x${wait}`);
  const test = {
    input_series: [{ series: 'process_start_time_seconds{job="users",instance="users-1"}', values: starts.join(' ') }],
    promql_expr_test: Array.from({ length: 80 }, (_, minute) => ({
      expr: 'group by (alertname) (ALERTS{alertname="ProcessRestarting",alertstate="firing"})',
      eval_time: `${minute + 10}m`,
      exp_samples: [{ labels: '{alertname="ProcessRestarting"}', value: 1 }],
    })),
  };
  return [test];
}

/** Whether the alert fires for processes that end again, and not for a rollout of many. */
function rolloutTest() {
  const started = (/** @type {number} */ process, /** @type {string} */ values) => ({
    series: `process_start_time_seconds{job="users",instance="users-${process}"}`,
    values,
  });
  const inTurns = Array.from({ length: 10 }, (_, process) => started(process, `1+0x${40 + process} 2+0x200`));
  return [
    {
      input_series: inTurns,
      promql_expr_test: Array.from({ length: 60 }, (_, minute) => firing('ProcessRestarting', minute, false)),
    },
    {
      // One of ten, three times.
      input_series: [
        started(0, '1+0x40 2+0x3 3+0x3 4+0x200'),
        ...inTurns.slice(1).map(({ series }) => ({ series, values: '1+0x250' })),
      ],
      promql_expr_test: [
        firing('ProcessRestarting', 9, false),
        firing('ProcessRestarting', 13, true),
        firing('ProcessRestarting', 40, false),
      ],
    },
    {
      // Four of four by one command, two of them twice.
      input_series: [0, 1, 2, 3].map((process) =>
        started(process, process < 2 ? `1+0x${40 + process} 2+0x9 3+0x200` : `1+0x${40 + process} 2+0x200`),
      ),
      promql_expr_test: [
        firing('ProcessRestarting', 9, false),
        firing('ProcessRestarting', 15, true),
        firing('ProcessRestarting', 40, false),
      ],
    },
  ];
}

/**
 * Whether the alert fires for one process of two that ends before its metrics are read, and not for one that has been replaced, is new, or has been
 * away for a moment.
 */
function unseenTest() {
  const up = (/** @type {string} */ instance, /** @type {string} */ values) => ({
    series: `up{job="users",instance="${instance}"}`,
    values,
  });
  const firing = (/** @type {number} */ minute, /** @type {boolean} */ isExpected) => ({
    expr: 'group by (alertname) (ALERTS{alertname="ProcessRestarting",alertstate="firing"})',
    eval_time: `${minute}m`,
    exp_samples: isExpected ? [{ labels: '{alertname="ProcessRestarting"}', value: 1 }] : [],
  });
  const quiet = Array.from({ length: 60 }, (_, minute) => firing(minute, false));
  return [
    {
      // A process that lives for a moment once in five minutes, and is mended after an hour.
      input_series: [up('users-1', '1+0x320'), up('users-2', `${'0+0x15 1+0x0 0+0x2 '.repeat(12)} 1+0x80`)],
      promql_expr_test: [
        ...Array.from({ length: 45 }, (_, minute) => firing(minute + 12, true)),
        ...[64, 70, 78].map((minute) => firing(minute, false)),
      ],
    },
    {
      input_series: [up('users-1', '1+0x240'), up('users-2', '1+0x60 0+0x1 _x180'), up('users-3', '_x60 0+0x3 1+0x180')],
      promql_expr_test: quiet,
    },
    { input_series: [up('users-1', '1+0x240'), up('users-2', '1+0x60 0+0x16 1+0x180')], promql_expr_test: quiet },
    // All of them: ServiceMissing.
    { input_series: [up('users-1', '0+0x240'), up('users-2', '0+0x240')], promql_expr_test: quiet },
  ];
}

/**
 * Whether there is a warning for one of several brokers that nobody can connect to, and none for the only one, nor for a process that alone cannot.
 */
function lostBrokerTest() {
  const connected = (/** @type {string} */ process, /** @type {number} */ broker, /** @type {string} */ values) => ({
    series: `rabbitmq_connected{job="users",instance="${process}",connection="users consuming",address="broker-${broker}:5672"}`,
    values,
  });
  const firing = (/** @type {number} */ minute, /** @type {boolean} */ isExpected) => ({
    expr: 'group by (alertname, severity) (ALERTS{alertname="DependencyAway",alertstate="firing"})',
    eval_time: `${minute}m`,
    exp_samples: isExpected ? [{ labels: '{alertname="DependencyAway",severity="warning"}', value: 1 }] : [],
  });
  const quiet = Array.from({ length: 40 }, (_, minute) => firing(minute, false));
  return [
    {
      // Away for 20 minutes, and then back. The second process begins meanwhile.
      input_series: [
        connected('users-1', 1, '1+0x40 0+0x79 1+0x80'),
        connected('users-1', 2, '_x41 1+0x79'),
        connected('users-2', 1, '_x60 0+0x59 1+0x80'),
        connected('users-2', 2, '_x60 1+0x59'),
      ],
      promql_expr_test: [
        ...[9, 12, 14].map((minute) => firing(minute, false)),
        ...Array.from({ length: 13 }, (_, minute) => firing(minute + 17, true)),
        ...[31, 35, 45].map((minute) => firing(minute, false)),
      ],
    },
    // DependencyAway is critical by dependency_up then.
    { input_series: [connected('users-1', 1, '1+0x40 0+0x120')], promql_expr_test: quiet },
    {
      input_series: [
        connected('users-1', 1, '1+0x40 0+0x120'),
        connected('users-1', 2, '_x41 1+0x120'),
        connected('users-2', 1, '1+0x160'),
      ],
      promql_expr_test: quiet,
    },
  ];
}

/** Whether slow calls fire, and not one that is nearly alone, as at night. */
function slowCallsTest() {
  const calls = (/** @type {string} */ slow, /** @type {string} */ all) =>
    [
      ['bucket{le="0.5",', '0+0x240'],
      ['bucket{le="1",', slow],
      ['bucket{le="+Inf",', slow],
      ['count{', all],
    ].map(([name, values]) => ({
      series: `http_request_seconds_${name}job="gateway",route="/v1/users/get",status="200"}`,
      values,
    }));
  const quiet = Array.from({ length: 40 }, (_, minute) => firing('CallsSlow', minute, false));
  return [
    { input_series: calls('0+0x40 1+0x160', '0+0x40 1+0x160'), promql_expr_test: quiet },
    {
      input_series: calls('0+0x40 1+1x40 40+0x80', '0+0x40 1+1x40 40+0x80'),
      promql_expr_test: [firing('CallsSlow', 9, false), firing('CallsSlow', 16, true), firing('CallsSlow', 30, false)],
    },
  ];
}

/** Whether a gateway without a place for another connection fires, and none that has refused a few. */
function refusedConnectionsTest() {
  const refused = (/** @type {string} */ values) => [
    { series: 'gateway_connections_refused_total{job="gateway",instance="gateway-1"}', values },
  ];
  return [
    {
      input_series: refused('0+0x40 5+0x80'),
      promql_expr_test: [10, 12, 14].map((minute) => firing('CallsRefused', minute, false)),
    },
    {
      input_series: refused('0+0x40 5+5x40 200+0x80'),
      promql_expr_test: [firing('CallsRefused', 9, false), firing('CallsRefused', 16, true), firing('CallsRefused', 30, false)],
    },
  ];
}

/** Whether a retention that fails at each attempt fires, and none that has failed for an hour. */
function retentionTest() {
  const failures = (/** @type {string} */ values) => [
    { series: 'retention_failures_total{job="notifications",instance="notifications-1"}', values },
  ];
  // Attempts every ten minutes: 40 samples.
  const failing = (/** @type {number} */ attempts) =>
    Array.from({ length: attempts }, (_, attempt) => `${attempt + 1}+0x39`).join(' ');
  return [
    {
      input_series: failures(`0+0x40 ${failing(6)} 6+0x800`),
      promql_expr_test: Array.from({ length: 24 }, (_, part) => firing('DeletionStuck', 10 * (part + 1), false)),
    },
    {
      input_series: failures(`0+0x40 ${failing(18)} 18+0x400`),
      promql_expr_test: [
        firing('DeletionStuck', 120, false),
        firing('DeletionStuck', 150, true),
        firing('DeletionStuck', 250, false),
      ],
    },
  ];
}
