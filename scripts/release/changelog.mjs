const HEADING = /^## \[([^\]]+)\](?: - (.+))?$/gm;
const DATE = /^\d{4}-\d\d-\d\d$/;

/** @typedef {{ name: string, date?: string, body: string }} Section */

/** @param {string} changelog @returns {Section[]} newest first; a section that is not released has no date */
function sectionsOf(changelog) {
  const headings = [...changelog.matchAll(HEADING)];
  return headings.map(({ index, 0: heading, 1: name, 2: date = '' }, place) => ({
    name,
    date: DATE.test(date) ? date : undefined,
    body: changelog.slice(index + heading.length, headings[place + 1]?.index).trim(),
  }));
}

/** @param {string} changelog */
export const newestRelease = (changelog) => sectionsOf(changelog).find(({ date }) => date !== undefined);

/** @param {string} changelog @param {string} version @returns {string[]} why its section cannot become that of the version */
export function changelogProblems(changelog, version) {
  const sections = sectionsOf(changelog);
  const unreleased = sections.find(({ name }) => name === 'Unreleased');
  const problems = [];
  if (!unreleased) problems.push('CHANGELOG.md has no section [Unreleased]');
  else if (!/^- /m.test(unreleased.body)) problems.push('CHANGELOG.md has no entry under [Unreleased]');
  if (sections.some(({ name }) => name === version)) problems.push(`CHANGELOG.md has a section [${version}] already`);
  return problems;
}

/**
 * Gives the section [Unreleased] the version and the date, and begins a new one.
 * @param {string} changelog
 * @param {string} version
 * @param {string} date
 */
export const withRelease = (changelog, version, date) =>
  changelog.replace(/^## \[Unreleased\]$/m, `## [Unreleased]\n\n## [${version}] - ${date}`);
