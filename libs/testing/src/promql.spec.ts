import { metricNamesOf } from './promql';

it.each([
  ['rate(http_requests_total{route=~"/v1/.*"}[5m])', ['http_requests_total']],
  ['sum by (job, dependency) (dependency_up == bool 0)', ['dependency_up']],
  ['a:b:rate5m > 0.01 and on (queue) max(queue_consumers) == 0', ['a:b:rate5m', 'queue_consumers']],
  ['histogram_quantile(0.99, sum by (route, le) (rate(http_request_seconds_bucket[5m])))', ['http_request_seconds_bucket']],
  ['absent(up{job="gateway"} == 1) or up / up', ['up']],
])('metrics in %s', (expression, names) => {
  expect(metricNamesOf(expression)).toEqual(names);
});
