import { readFileSync } from 'node:fs';

/** The SQL statement between the markers of this name in docs/operations.md. @throws Error when there is none */
export function documentedSql(name: string): string {
  const page = readFileSync('docs/operations.md', 'utf8');
  const [, statement] = new RegExp(`<!-- ${name}:begin -->\\s+\`\`\`sql\\n(.*?)\`\`\``, 's').exec(page) ?? [];
  if (!statement) throw new Error(`docs/operations.md has no statement "${name}"`);
  return statement;
}

/** A statement for psql, with its variables as parameters in the order of these names. */
export const withParameters = (sql: string, names: readonly string[]): string =>
  names.reduce((text, name, index) => text.replaceAll(`:'${name}'`, `$${index + 1}`), sql);
