import { Histogram, Registry } from 'prom-client';
import { Metrics, merged, quantile, since } from './metrics-text';

it('reads what prom-client writes', async () => {
  const registry = new Registry();
  const histogram = new Histogram({ name: 'h', help: 'h', labelNames: ['l'], buckets: [1, 2, 4], registers: [registry] });
  const label = 'a "quoted" \\ text,\n with le="1"';
  for (const value of [0.5, 1.5, 3, 3, 9]) histogram.observe({ l: label }, value);
  const metrics = new Metrics(await registry.metrics(), new Set(['h_bucket', 'h_count']));
  expect(metrics.sum('h_count', ({ l }) => l === label)).toBe(5);
  expect(metrics.sum('h_sum')).toBeUndefined();
  expect([...metrics.histogram('h')]).toEqual([
    [1, 1],
    [2, 2],
    [4, 4],
    [Infinity, 5],
  ]);
});

it('estimates quantiles as Prometheus does', () => {
  const histogram = new Map([
    [1, 0],
    [2, 10],
    [4, 20],
    [Infinity, 20],
  ]);
  expect(quantile(histogram, 0.25)).toBe(1.5);
  expect(quantile(histogram, 0.75)).toBe(3);
  expect(quantile(new Map([...histogram].map(([bound]) => [bound, 0])), 0.5)).toBeNaN();
  expect(quantile(new Map([...histogram, [Infinity, 2000]]), 0.99)).toBe(4);
  expect(quantile(since(histogram, new Map([[2, 10]])), 0.5)).toBeGreaterThan(2);
  expect(merged([histogram, histogram]).get(4)).toBe(40);
});
