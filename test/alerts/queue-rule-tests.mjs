// Tests of promtool for the rules about queues.

/** By name. @returns {Record<string, object[]>} */
export const queueRuleTests = () => ({
  'silent-leader': silentLeaderTest(),
  'late-commands': lateCommandsTest(),
});

/** Whether an alert of this name fires at a minute. @param {string} alertname @param {number} minute @param {boolean} isExpected */
export const firing = (alertname, minute, isExpected) => ({
  expr: `group by (alertname) (ALERTS{alertname="${alertname}",alertstate="firing"})`,
  eval_time: `${minute}m`,
  exp_samples: isExpected ? [{ labels: `{alertname="${alertname}"}`, value: 1 }] : [],
});

/**
 * Whether the alerts of letters, of a full queue and of one without consumers stay while the broker says now and then that there is nothing. A queue that
 * is full for a moment fires none.
 */
function silentLeaderTest() {
  /** @param {string} queue @param {string} values */
  const series = (queue, values) => ({ series: `queue_messages{job="users",instance="users-1",queue="${queue}"}`, values });
  const limit = { series: 'queue_messages_limit{job="users",instance="users-1",queue="users.commands"}', values: '10+0x240' };
  const consumers = (/** @type {string} */ values) => ({
    series: 'queue_consumers{job="users",instance="users-1",queue="users.commands"}',
    values,
  });
  const sometimes = `0+0x20 ${'7 0 7 0 0 7 '.repeat(10)} 0+0x60`;
  /** @param {number} from */
  const during = (from) => Array.from({ length: 20 - from }, (_, minute) => minute + from);
  return [
    {
      input_series: [series('users.commands.dead', sometimes)],
      promql_expr_test: [
        firing('DeadLetters', 4, false),
        ...during(6).map((minute) => firing('DeadLetters', minute, true)),
        firing('DeadLetters', 27, false),
      ],
    },
    {
      // The last part is without an answer of the broker for a minute.
      input_series: [series('users.commands', `${sometimes.replace(/0\+0x60$/, '7 stale _x3 7 7 7 0+0x60')}`), limit],
      promql_expr_test: [
        firing('QueueFilling', 4, false),
        ...during(8).map((minute) => firing('QueueFilling', minute, true)),
        firing('QueueFilling', 22, true),
        firing('QueueFilling', 26, false),
      ],
    },
    {
      input_series: [series('users.commands', sometimes), consumers('0+0x240')],
      promql_expr_test: [
        firing('QueueNotConsumed', 4, false),
        ...during(8).map((minute) => firing('QueueNotConsumed', minute, true)),
        firing('QueueNotConsumed', 23, false),
      ],
    },
    {
      // It is consumed, and neither number is known now and then.
      input_series: [series('users.commands', sometimes), consumers('2 0 0 2 0 0 '.repeat(40))],
      promql_expr_test: Array.from({ length: 30 }, (_, minute) => firing('QueueNotConsumed', minute, false)),
    },
    {
      input_series: [series('users.commands', `0+0x20 ${'9 0+0x8 '.repeat(20)}`), limit],
      promql_expr_test: Array.from({ length: 40 }, (_, minute) => firing('QueueFilling', minute, false)),
    },
  ];
}

/**
 * Whether commands and events that wait for minutes in a queue that is consumed fire, and none of a publisher whose clock is wrong, nor many that are
 * quick, nor a few that fail.
 */
function lateCommandsTest() {
  const queue = 'users.commands.1';
  /** @param {string} all @param {string} young @param {string} le */
  const ages = (all, young, le = '300') =>
    [
      [`bucket{le="${le}",`, young],
      ['bucket{le="+Inf",', all],
      ['count{', all],
    ].map(([name, values]) => ({
      series: `rabbitmq_command_age_seconds_${name}job="users",instance="users-1",queue="${queue}"}`,
      values,
    }));
  /** @param {string} values @param {string} name */
  const waiting = (values, name = queue) => ({
    series: `queue_messages{job="users",instance="users-1",queue="${name}"}`,
    values,
  });
  /** @param {string} old */
  const lags = (old) =>
    [
      ['60', '0+0x240'],
      ['300', old],
      ['+Inf', old],
    ].map(([le, values]) => ({
      series: `copy_lag_seconds_bucket{le="${le}",job="notifications",instance="n-1",type="user.removed.v1"}`,
      values,
    }));
  const quiet = Array.from({ length: 60 }, (_, minute) => firing('QueueFilling', minute, false));
  const fires = [9, 14].map((minute) => firing('QueueFilling', minute, false));
  fires.push(firing('QueueFilling', 21, true), firing('QueueFilling', 29, true), firing('QueueFilling', 41, false));
  const growing = '0+0x40 15+15x80 1200+0x120';
  const backlog = '0+0x40 400+0x80 0+0x120';
  return [
    { input_series: [...ages(growing, '0+0x240'), waiting(backlog)], promql_expr_test: fires },
    { input_series: [...ages(growing, '0+0x240', '300.0'), waiting(backlog)], promql_expr_test: fires },
    { input_series: [...ages(growing, '0+0x240'), waiting('0 3 0 0 '.repeat(60))], promql_expr_test: quiet },
    { input_series: [...ages(growing, growing), waiting(backlog)], promql_expr_test: quiet },
    { input_series: [...lags(growing), waiting(backlog, 'notifications.events')], promql_expr_test: fires },
    { input_series: [...lags(growing), waiting('0 3 0 0 '.repeat(60), 'notifications.events')], promql_expr_test: quiet },
    {
      input_series: [waiting('0+0x40 20+0x80 0+0x120', 'users.retry.5m')],
      promql_expr_test: fires.with(2, firing('QueueFilling', 23, true)),
    },
    {
      input_series: [waiting('0+0x40 20+0x80 0+0x120', 'users.suspects')],
      promql_expr_test: fires.with(2, firing('QueueFilling', 23, true)),
    },
    { input_series: [waiting('0+0x40 9+0x80 0+0x120', 'users.retry.5m')], promql_expr_test: quiet },
    // A lock of six minutes: the last retry is five later.
    { input_series: [waiting('0+0x40 20+0x44 0+0x160', 'users.retry.5m')], promql_expr_test: quiet },
  ];
}
