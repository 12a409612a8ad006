// Mutants of the rule which notifications a user is shown.
const VISIBILITY = 'apps/notifications/src/db/visibility.sql.ts';
const PAGES = ['apps/notifications/src/db/pages.int-spec.ts', 'selects, orders and pages by userId'];

/** @type {import('./mutants.mjs').Mutant[]} */
export const VISIBILITY_MUTANTS = [
  {
    name: 'a user who is shown notifications after leaving',
    edits: [[VISIBILITY, ' AND m.added > (SELECT version FROM departed)', '']],
    test: PAGES,
  },
  {
    name: 'restricted documents that all members are shown',
    edits: [[VISIBILITY, "'') <> 'restricted'`", "'') <> 'nothing'`"]],
    test: PAGES,
  },
  {
    name: 'a hidden notification at the end of a page',
    edits: [[VISIBILITY, 't.number < ${lookAt} OR ${shown} AS is_shown', 'true AS is_shown']],
    test: PAGES,
  },
  {
    name: 'a page that goes on behind its end',
    edits: [[VISIBILITY, "${direction === 'DESC' ? '>=' : '<='} (SELECT", "${direction === 'DESC' ? '<=' : '>='} (SELECT"]],
    test: PAGES,
  },
  {
    name: 'users of many documents who are shown none of them',
    edits: [[VISIBILITY, ' OR ${MANY} AND ${isOpenTo(document, organization, user)})`', ')`']],
    test: PAGES,
  },
];
