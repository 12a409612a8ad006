import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { ROOT } from '../checkout/project.mjs';
import { between } from './between.mjs';

/** @type {Record<string, string>} */
const LANGUAGES = { '.mjs': 'js', '.py': 'python', '.sh': 'sh', '.ts': 'ts' };

/**
 * Puts each example file between the markers that name it: what is shown is what test/e2e/examples.e2e-spec.ts has run.
 * @param {string} text
 */
export function embedExamples(text) {
  const files = [...text.matchAll(/<!-- (examples\/[\w./-]+):begin -->/g)].map(([, file]) => file);
  if (files.length === 0) throw new Error('it embeds no example.');
  return files.reduce((result, file) => {
    const code = readFileSync(join(ROOT, file), 'utf8').trimEnd();
    return between(file, result, `\`\`\`${LANGUAGES[extname(file)]}\n${code}\n\`\`\``);
  }, text);
}
