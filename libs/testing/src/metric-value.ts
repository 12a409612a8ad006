import type { Registry } from 'prom-client';

/** The value of a metric, summed over all labels that are not given. */
export async function metricValue(registry: Registry, name: string, labels: Record<string, string> = {}): Promise<number> {
  const { values } = await registry.getSingleMetric(name)!.get();
  const wanted = Object.entries(labels);
  const found = values.filter((one) => wanted.every(([label, text]) => one.labels[label] === text));
  return found.reduce((sum, { value }) => sum + value, 0);
}
