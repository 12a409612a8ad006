const MILLISECONDS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export type TimeUnit = keyof typeof MILLISECONDS;

/** The milliseconds of a text such as `90s`; NaN when it is no number with one of these units. */
export function milliseconds(text: string, units: readonly TimeUnit[]): number {
  const [, digits, letters] = /^(\d{1,12})([a-z]+)$/.exec(text) ?? [];
  const unit = units.find((one) => one === letters);
  return unit === undefined ? NaN : Number(digits) * MILLISECONDS[unit];
}
