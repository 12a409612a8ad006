import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../checkout/project.mjs';

const PAGE = 'docs/code.md';
/** Folders of tools, which are no part of the tree. A folder that .gitignore names is none either. */
const FOREIGN = ['.git', '.idea', '.vscode'];
/** In the Layout `<message>/` stands for every folder at its place. */
const PLACEHOLDER = /^<.*>$/;

/** @returns {string[]} the folders that the Layout of docs/code.md lacks, and those that it shows and that are not there */
export function layoutProblems() {
  const shown = shownFolders(layoutOf(readFileSync(join(ROOT, PAGE), 'utf8')));
  const actual = actualFolders();
  /** @param {string} one @param {string} other */
  const matches = (one, other) => {
    const [parts, others] = [one.split('/'), other.split('/')];
    return parts.length === others.length && parts.every((part, index) => PLACEHOLDER.test(part) || part === others[index]);
  };
  return [
    ...actual.filter((folder) => !shown.some((one) => matches(one, folder))).map((folder) => `does not show ${folder}/`),
    ...shown.filter((one) => !actual.some((folder) => matches(one, folder))).map((one) => `shows ${one}/, which is not there`),
  ].map((problem) => `${PAGE}: the Layout ${problem}.`);
}

/** @param {string} page */
function layoutOf(page) {
  const [, tree] = /^## Layout$[^]*?^```$\n([^]*?)^```$/m.exec(page) ?? [];
  if (!tree) throw new Error('it needs a section "Layout" with a block of code.');
  return tree;
}

/**
 * A line is two spaces for each level, a path that ends with a slash, and words about it. Lines without such a path go on with the words.
 * @param {string} tree
 */
function shownFolders(tree) {
  const found = new Set();
  /** @type {string[]} */
  const above = [];
  for (const line of tree.split('\n')) {
    const [, indentation, path] = /^( *)(\S+)\/( |$)/.exec(line) ?? [];
    if (path === undefined) continue;
    above.splice(indentation.length / 2, Infinity, path);
    const parts = above.join('/').split('/');
    parts.forEach((_, index) => found.add(parts.slice(0, index + 1).join('/')));
  }
  return [...found];
}

/** Every folder with a file in it, at any depth. */
function actualFolders() {
  const ignored = readFileSync(join(ROOT, '.gitignore'), 'utf8').match(/^[^#\s*]+(?=\/$)/gm) ?? [];
  const skipped = new Set([...FOREIGN, ...ignored]);
  /** @type {string[]} */
  const found = [];
  /** @param {string} folder */
  const walk = (folder) => {
    const entries = readdirSync(join(ROOT, folder), { withFileTypes: true });
    const before = found.length;
    for (const entry of entries)
      if (entry.isDirectory() && !skipped.has(entry.name)) walk(folder ? `${folder}/${entry.name}` : entry.name);
    const hasFiles = entries.some((entry) => entry.isFile()) || found.length > before;
    if (folder && hasFiles) found.push(folder);
  };
  walk('');
  return found.sort();
}
