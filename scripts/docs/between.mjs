/**
 * Replaces what stands between the two markers of this name; the rest of the file is written by people.
 * @param {string} name
 * @param {string} text
 * @param {string} content
 */
export function between(name, text, content) {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const parts = text.split(begin);
  const [, rest] = parts[1]?.split(end) ?? [];
  if (parts.length !== 2 || rest === undefined) throw new Error(`it needs the lines ${begin} and ${end}, once.`);
  return `${parts[0]}${begin}\n\n${content}\n\n${end}${rest}`;
}
