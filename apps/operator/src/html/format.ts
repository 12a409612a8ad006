const ABSENT = '–';

/** A number with three digits that count; a dash for NaN. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return ABSENT;
  const digits = value !== 0 && Math.abs(value) < 100 ? 3 : undefined;
  return value.toLocaleString('en', digits ? { maximumSignificantDigits: digits } : { maximumFractionDigits: 0 });
}

/** A duration in seconds, from microseconds to days. */
export function seconds(value: number): string {
  if (!Number.isFinite(value)) return ABSENT;
  if (value === 0) return '0 s';
  if (value < 1) return `${number(value * 1000)} ms`;
  if (value < 120) return `${number(value)} s`;
  if (value < 7200) return `${number(value / 60)} min`;
  return value < 172_800 ? `${number(value / 3600)} h` : `${number(value / 86_400)} d`;
}

export const bytes = (value: number): string => (Number.isFinite(value) ? `${number(value / 1024 / 1024)} MB` : ABSENT);
export const perSecond = (value: number): string => (Number.isFinite(value) ? `${number(value)}/s` : ABSENT);
export const percent = (value: number): string => (Number.isFinite(value) ? `${number(value * 100)} %` : ABSENT);

/** A time of the day in UTC, with its date. */
export const time = (date: Date): string =>
  date
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
