/**
 * A line chart.
 * @typedef {object} Plot
 * @property {string} file
 * @property {string} title
 * @property {{ label: string, logarithmic?: boolean }} x
 * @property {{ label: string, logarithmic?: boolean }} y
 * @property {{ name: string, points: number[][] }[]} series
 */

const [WIDTH, HEIGHT] = [860, 400];
const AREA = { left: 70, right: 540, top: 50, bottom: 340 };
/** Lines differ without colours as well, and where colours repeat. */
const DASHES = ['', '6 3', '2 3', '8 3 2 3', '12 4', '1 2'];

const COLOURS = 6;

/** Colours follow the reader's scheme, also where the file is shown as an image. */
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .line { fill: none; stroke-width: 2; }
  .c0 { stroke: #0969da; } .c1 { stroke: #bc4c00; } .c2 { stroke: #1a7f37; }
  .c3 { stroke: #8250df; } .c4 { stroke: #bf3989; } .c5 { stroke: #57606a; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .grid { stroke: #3d444d; }
    .c0 { stroke: #58a6ff; } .c1 { stroke: #f0883e; } .c2 { stroke: #3fb950; }
    .c3 { stroke: #bc8cff; } .c4 { stroke: #f778ba; } .c5 { stroke: #9198a1; }
  }`;

/** @param {Plot} plot @returns {string} an SVG document, readable on light and on dark ground */
export function chart({ title, x, y, series }) {
  const points = series.flatMap((one) => one.points);
  const across = scale(
    x,
    points.map(([value]) => value),
    AREA.left,
    AREA.right,
  );
  const upward = scale(
    y,
    points.map(([, value]) => value),
    AREA.bottom,
    AREA.top,
  );
  const parts = [
    text(AREA.left, 26, title, 'class="title"'),
    ...across.ticks.map((value) => {
      const at = round(across.place(value));
      return line(at, AREA.top, at, AREA.bottom, 'grid') + text(at, AREA.bottom + 18, short(value), 'text-anchor="middle"');
    }),
    ...upward.ticks.map((value) => {
      const at = round(upward.place(value));
      return line(AREA.left, at, AREA.right, at, 'grid') + text(AREA.left - 8, at + 4, short(value), 'text-anchor="end"');
    }),
    text((AREA.left + AREA.right) / 2, HEIGHT - 18, x.label, 'text-anchor="middle"'),
    text(
      16,
      (AREA.top + AREA.bottom) / 2,
      y.label,
      `text-anchor="middle" transform="rotate(-90 16 ${(AREA.top + AREA.bottom) / 2})"`,
    ),
    ...series.map(({ name, points: own }, index) => {
      const path = own.map(([a, b]) => `${round(across.place(a))},${round(upward.place(b))}`).join(' ');
      const look = `line c${index % COLOURS}" stroke-dasharray="${DASHES[(index + Math.floor(index / COLOURS)) % DASHES.length]}`;
      const legend = AREA.top + 14 + index * 22;
      return (
        `<polyline class="${look}" points="${path}"/>` +
        line(AREA.right + 16, legend, AREA.right + 48, legend, look) +
        text(AREA.right + 56, legend + 4, name)
      );
    }),
  ];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" role="img">`;
  return `${head}\n<title>${escaped(title)}</title>\n<style>${STYLE}\n</style>\n${parts.join('\n')}\n</svg>\n`;
}

/** @param {{ logarithmic?: boolean }} options @param {number[]} values @param {number} from @param {number} to */
function scale({ logarithmic }, values, from, to) {
  const highest = Math.max(...values);
  const lowest = logarithmic ? Math.min(...values) : 0;
  /** @type {(value: number) => number} */
  const measure = logarithmic ? Math.log10 : (value) => value;
  const ticks = logarithmic ? powersBetween(lowest, highest) : stepsTo(highest);
  const [low, high] = [measure(Math.min(lowest, ticks[0])), measure(Math.max(highest, ticks[ticks.length - 1]))];
  /** @param {number} value */
  const place = (value) => from + ((measure(value) - low) / (high - low || 1)) * (to - from);
  return { ticks, place };
}

/**
 * From the power of ten below to the one above, with 2 and 5 in between when there are few.
 * @param {number} lowest
 * @param {number} highest
 */
function powersBetween(lowest, highest) {
  const [first, last] = [Math.floor(Math.log10(lowest)), Math.ceil(Math.log10(highest))];
  const factors = last - first > 3 ? [1] : [1, 2, 5];
  const all = [];
  for (let power = first; power <= last; power++) all.push(...factors.map((factor) => factor * 10 ** power));
  const start = all.findLastIndex((value) => value <= lowest);
  const end = all.findIndex((value) => value >= highest);
  return all.slice(Math.max(0, start), end < 0 ? undefined : end + 1);
}

/** @param {number} highest */
function stepsTo(highest) {
  const rough = (highest || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power;
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, index) => index * step);
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;
/** @param {number} value */
const short = (value) =>
  value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : String(Number(value.toPrecision(6)));
/** @param {string} value */
const escaped = (value) => value.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
/** @param {number} x @param {number} y @param {string} content */
const text = (x, y, content, more = '') => `<text x="${x}" y="${y}" ${more}>${escaped(content)}</text>`;
/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} look */
const line = (x1, y1, x2, y2, look) => `<line class="${look}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
