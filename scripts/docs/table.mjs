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
