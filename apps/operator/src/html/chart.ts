import { html, type Html } from './html';

const WIDTH = 240;
const HEIGHT = 48;
/** Points in the drawing. Each is the greatest of its time, so that a short peak stays visible. */
const DRAWN = 100;
const NOTHING = 'no value in ten minutes';

export interface Chart {
  title: string;
  /** Oldest first; NaN is a gap. */
  points: readonly number[];
  /** A second line, such as the 99th percentile beside the median. */
  above?: readonly number[];
  format: (value: number) => string;
}

/** A small chart of the last ten minutes: the newest value as a text, the greatest one at the top of the scale. */
export function chart({ title, points, above, format }: Chart): Html {
  const lines = [points, ...(above ? [above] : [])];
  const known = lines.flat().filter(Number.isFinite);
  const greatest = Math.max(...known, 0);
  const newest = lines.map((line) => format(line.at(-1) ?? NaN)).join(' / ');
  const isKnown = known.length > 0;
  const label = `${title}: now ${newest}, ${isKnown ? `at most ${format(greatest)} in ten minutes` : NOTHING}`;
  return html`<figure class="chart">
    <figcaption>${title} <strong>${newest}</strong></figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">
      ${lines.map((line, index) => html`<path class="line-${index}" d="${path(line, greatest)}" />`)}
    </svg>
    <span class="scale" aria-hidden="true">${isKnown ? `highest: ${format(greatest)}` : NOTHING}</span>
  </figure>`;
}

function path(points: readonly number[], greatest: number): string {
  const each = Math.max(1, Math.ceil(points.length / DRAWN));
  const commands: string[] = [];
  let isDrawing = false;
  for (let start = 0; start < points.length; start += each) {
    const value = Math.max(...points.slice(start, start + each).map((point) => (Number.isNaN(point) ? -1 : point)));
    const x = ((start / each) * WIDTH) / DRAWN;
    const y = HEIGHT - 1 - (greatest > 0 ? (value / greatest) * (HEIGHT - 2) : 0);
    if (value >= 0) commands.push(`${isDrawing ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`);
    isDrawing = value >= 0;
  }
  return commands.join('');
}
