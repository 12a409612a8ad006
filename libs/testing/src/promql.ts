/** Words of PromQL that stand where a metric may, and those whose parentheses hold labels. */
const WORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);

/** Names of the metrics in an expression of PromQL. */
export function metricNamesOf(expression: string): string[] {
  const bare = expression
    .replace(/\{[^}]*\}/g, ' ')
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/"[^"]*"/g, ' ')
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ');
  const names = [...bare.matchAll(/(?<![\w.:])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])/g)].map(([name]) => name);
  return [...new Set(names.filter((name) => !WORDS.has(name)))];
}
