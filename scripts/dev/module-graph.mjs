import { dirname, join } from 'node:path/posix';

// The compiler writes every import that is left after types are gone in this form, dynamic ones as well.
const REQUIRE = /\brequire\("(\.{1,2}\/[^"]+)"\)/g;

/**
 * The compiled files that a program loads of ours. Taken from the output, not the sources: an import of types only is none.
 * @param {string} entry
 * @param {(path: string) => string | undefined} codeOf a compiled file; undefined when there is none
 * @returns {Set<string>}
 */
export function modulesOf(entry, codeOf) {
  const found = new Set([entry]);
  for (const path of found)
    for (const [, name] of (codeOf(path) ?? '').matchAll(REQUIRE)) {
      const required = join(dirname(path), name);
      found.add(required.endsWith('.js') ? required : `${required}.js`);
    }
  return found;
}
