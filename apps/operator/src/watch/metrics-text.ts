/** One line of a metric. */
export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

type Labels = Readonly<Record<string, string>>;

const LINE = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)",?/g;

/** Metrics of one process, from the text format of Prometheus. */
export class Metrics {
  private readonly families = new Map<string, Sample[]>();

  /** @param wanted names that are kept; a histogram has three names */
  constructor(text: string, wanted: ReadonlySet<string>) {
    for (const line of text.split('\n')) {
      const [, name = '', labels = '', value = ''] = LINE.exec(line) ?? [];
      if (!wanted.has(name)) continue;
      const sample = { labels: labelsOf(labels), value: Number(value.replace('Inf', 'Infinity')) };
      const family = this.families.get(name);
      if (family) family.push(sample);
      else this.families.set(name, [sample]);
    }
  }

  /** Samples whose labels match. */
  all(name: string, where: (labels: Labels) => boolean = () => true): Sample[] {
    return (this.families.get(name) ?? []).filter(({ labels }) => where(labels));
  }

  /** Sum of the samples; undefined when there are none. */
  sum(name: string, where?: (labels: Labels) => boolean): number | undefined {
    const samples = this.all(name, where);
    return samples.length === 0 ? undefined : samples.reduce((sum, { value }) => sum + value, 0);
  }

  /** Sum of a histogram: observations up to each bound. */
  histogram(name: string, where?: (labels: Labels) => boolean): Histogram {
    const buckets: Histogram = new Map();
    for (const { labels, value } of this.all(`${name}_bucket`, where)) {
      const bound = Number((labels.le ?? '').replace('+Inf', 'Infinity'));
      buckets.set(bound, (buckets.get(bound) ?? 0) + value);
    }
    return buckets;
  }
}

function labelsOf(text: string): Labels {
  const labels: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(LABEL))
    labels[name] = value.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
  return labels;
}

/** Number of observations up to each bound. */
export type Histogram = Map<number, number>;

/** Observations of `later` that `earlier` does not have. */
export function since(later: Histogram, earlier: Histogram): Histogram {
  return new Map([...later].map(([bound, count]) => [bound, Math.max(0, count - (earlier.get(bound) ?? 0))]));
}

export function merged(histograms: readonly Histogram[]): Histogram {
  const sum: Histogram = new Map();
  for (const histogram of histograms) for (const [bound, count] of histogram) sum.set(bound, (sum.get(bound) ?? 0) + count);
  return sum;
}

/**
 * Value below which this share of the observations is, linear within its bucket, as histogram_quantile of Prometheus.
 * @returns NaN without an observation
 */
export function quantile(histogram: Histogram, share: number): number {
  const bounds = [...histogram].sort(([a], [b]) => a - b);
  const rank = share * (bounds.at(-1)?.[1] ?? 0);
  if (rank === 0) return NaN;
  let [from, below] = [0, 0];
  for (const [bound, count] of bounds) {
    if (count >= rank) return bound === Infinity ? from : from + ((bound - from) * (rank - below)) / (count - below);
    [from, below] = [bound, count];
  }
  return NaN;
}
