import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { between } from '../docs/between.mjs';
import { tableOf } from '../docs/table.mjs';
import { unknown } from '../processes/command-line.mjs';
import { ROOT } from './project.mjs';
import { runSuite } from './suite.mjs';

/** @typedef {Record<string, unknown>} Figures of a row, by column */

/**
 * Runs a suite whose tests are the rows of a table, prints the table, and ends this process.
 * @param {object} suite
 * @param {string} suite.project of Jest
 * @param {string} suite.pattern of the file with the rows
 * @param {NodeJS.ProcessEnv} suite.env by which that file gets its rows
 * @param {string[]} suite.columns
 * @param {(figures: Figures) => Figures} [suite.complete] adds columns that the tests do not know
 * @param {(figures: Figures[], failed: number) => number} suite.missed number of rows that missed a bound
 * @param {{ page: string, part: string }} [suite.document] part of a page of docs/ that is written anew
 */
export async function runRowSuite({ project, pattern, env, columns, complete = (row) => row, missed, document }) {
  /** @param {Figures[]} figures */
  const tableOfRows = (figures) => tableOf(columns, figures.map(complete));
  await runSuite({
    project,
    args: ['--testPathPatterns', pattern],
    env,
    // The measurements so far took minutes.
    interrupted: (figures) => process.stdout.write(`\n${tableOfRows(figures)}\n`),
    after: (figures, { passed, failed, seconds }) => {
      process.stdout.write(`\n${tableOfRows(figures)}\n`);
      if (!document) return;
      const { page, part } = document;
      const path = join(ROOT, 'docs', page);
      const minutes = Math.ceil(seconds / 60);
      const when = `${new Date().toISOString().slice(0, 10)}, ${minutes} minutes`;
      const not = missed(figures, failed);
      const content = `Last full run: ${when}, ${passed + failed - not} rows within every bound, ${not} not.\n\n${tableOfRows(figures)}`;
      writeFileSync(path, between(part, readFileSync(path, 'utf8'), content));
    },
  });
}

/**
 * @template {{ name: string }} R
 * @param {readonly R[]} rows
 * @param {string[]} parts of names; none means every row
 * @returns {readonly R[]}
 */
export function chosenRows(rows, parts) {
  const names = rows.map(({ name }) => name);
  /** @param {string} name @param {string} part */
  const isMeant = (name, part) => (names.includes(part) ? name === part : name.includes(part));
  const stray = parts.find((part) => !names.some((name) => isMeant(name, part)));
  if (stray !== undefined) throw unknown('row', stray, names);
  return parts.length === 0 ? rows : rows.filter(({ name }) => parts.some((part) => isMeant(name, part)));
}
