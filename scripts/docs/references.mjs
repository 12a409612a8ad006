import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { ROOT } from '../checkout/project.mjs';

const FOLDERS = ['.', '.github', 'docs', 'docs/runbooks', 'libs/client'];
/** Names paths of versions that are gone. */
const HISTORY = 'CHANGELOG.md';
const PATH = /(?<![\w./-])(?:apps|libs|scripts|test|bench|docs|deploy|examples|\.ci|\.github)\/[\w./-]*\w\/?/;

/**
 * @returns {string[]} links to pages and headings that are not there, code spans that name a file or a folder that is not there, and pages that
 *   README.md does not list
 */
export function referenceProblems() {
  const problems = pages().flatMap((page) => {
    const text = withoutBlocks(readFileSync(join(ROOT, page), 'utf8'));
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => linkProblem(page, target));
    const paths = page === HISTORY ? [] : [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => pathProblem(span));
    return [...new Set([...links, ...paths])].filter(Boolean).map((problem) => `${page}: ${problem}.`);
  });
  return [...problems, ...unlistedPages()];
}

function unlistedPages() {
  const [, table = ''] = /^## Pages$([^]*?)^## /m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? [];
  const unlisted = pages().filter((page) => dirname(page) === 'docs' && !table.includes(`(${page})`));
  return unlisted.map((page) => `README.md: the table "Pages" has no ${page}.`);
}

function pages() {
  return FOLDERS.filter((folder) => existsSync(join(ROOT, folder))).flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  );
}

/** @param {string} text */
const withoutBlocks = (text) => text.replace(/^```[^]*?^```$/gm, '');

/** @param {string} page @param {string} target */
function linkProblem(page, target) {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [path, heading] = target.split('#');
  const file = path ? join(ROOT, dirname(page), path) : join(ROOT, page);
  if (!existsSync(file)) return `the link ${target} leads to no file`;
  if (heading && !headingsOf(file).has(heading)) return `the link ${target} leads to no heading of ${relative(ROOT, file)}`;
  return undefined;
}

/**
 * As the forge names them in links.
 * @param {string} file
 */
function headingsOf(file) {
  const headings = withoutBlocks(readFileSync(file, 'utf8')).match(/^#+ .*$/gm) ?? [];
  return new Set(
    headings.map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/**
 * Spans with a placeholder or a pattern name no file. The beginning of a name is enough: Jest takes it as well.
 * @param {string} span
 */
function pathProblem(span) {
  if (/[*<>…{}$]/.test(span)) return undefined;
  const [path] = PATH.exec(span) ?? [];
  if (!path || existsSync(join(ROOT, path))) return undefined;
  const folder = join(ROOT, dirname(path));
  const isBeginning = existsSync(folder) && readdirSync(folder).some((name) => name.startsWith(`${basename(path)}.`));
  return isBeginning ? undefined : `there is no ${path}`;
}
