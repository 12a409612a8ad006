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

/** One metric in an expression, with the labels that its matchers name. */
export interface Selector {
  metric: string;
  labels: string[];
}

/** Every selector of a metric in an expression of PromQL. */
export function selectorsOf(expression: string): Selector[] {
  const names = metricNamesOf(expression);
  return [...expression.matchAll(/([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?/g)]
    .filter(([, metric]) => names.includes(metric))
    .map(([, metric, matchers = '']) => ({
      metric,
      labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label),
    }));
}

/** Every aggregation with `by` in an expression of PromQL: its labels, and the expression in its parentheses. */
export function groupingsOf(expression: string): { labels: string[]; body: string }[] {
  return [...expression.matchAll(/\bby\s*\(([^)]*)\)\s*\(/g)].map((found) => {
    const start = found.index + found[0].length;
    let [end, open] = [start, 1];
    while (open > 0 && end < expression.length) open += { '(': 1, ')': -1 }[expression[end++]] ?? 0;
    return { labels: found[1].split(',').map((label) => label.trim()), body: expression.slice(start, end - 1) };
  });
}
