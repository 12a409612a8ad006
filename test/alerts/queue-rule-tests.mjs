// Tests of promtool for the rules about queues.

/** By name. @returns {Record<string, object[]>} */
export const queueRuleTests = () => ({
  'silent-leader': silentLeaderTest(),
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
