const HEADING = /^## \[([^\]]+)\](?: - (.+))?$/gm;
const DATE = /^\d{4}-\d\d-\d\d$/;
/** An entry is a line or two for its reader. The reason and the details are in the commit, and in the page that it links to. */
const MOST_CHARACTERS = 450;

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

/** @param {string} changelog @returns {string[]} entries of the section [Unreleased] that are too long for their readers */
export function longEntries(changelog) {
  const { body = '' } = sectionsOf(changelog).find(({ name }) => name === 'Unreleased') ?? {};
  return [...body.matchAll(/^- .*(?:\n {2}.*)*/gm)]
    .map(([entry]) => entry.replace(/\s+/g, ' '))
    .filter(({ length }) => length > MOST_CHARACTERS)
    .map(
      (entry) => `CHANGELOG.md: the entry "${entry.slice(0, 60)}…" has ${entry.length} characters, more than ${MOST_CHARACTERS}.`,
    );
}

/**
 * Gives the section [Unreleased] the version and the date, and begins a new one.
 * @param {string} changelog
 * @param {string} version
 * @param {string} date
 */
export const withRelease = (changelog, version, date) =>
  changelog.replace(/^## \[Unreleased\]$/m, `## [Unreleased]\n\n## [${version}] - ${date}`);
