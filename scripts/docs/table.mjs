/** @param {string} text */
export const code = (text) => `\`${text}\``;

/**
 * A Markdown table.
 * @param {string[]} head
 * @param {string[][]} rows
 */
export function table(head, rows) {
  /** @param {string[]} cells */
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/**
 * A Markdown table of objects: a column has their values of its name.
 * @param {string[]} columns
 * @param {Record<string, unknown>[]} rows
 */
export const tableOf = (columns, rows) =>
  table(
    columns,
    rows.map((row) => columns.map((column) => String(row[column] ?? ''))),
  );
