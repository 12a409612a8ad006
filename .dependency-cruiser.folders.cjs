const { options } = require('./.dependency-cruiser.cjs');

/**
 * Apart from the other rules, because a rule about folders counts the imports of all their files: tests import what is above them.
 *
 * @type {import('dependency-cruiser').IConfiguration}
 */
module.exports = {
  forbidden: [
    {
      name: 'no-folder-cycles',
      comment: 'Two folders that need each other are one folder: neither can be read, moved or tested without the other.',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
  ],
  options: { ...options, exclude: { path: '(spec\\.ts$|^apps/[^/]+/test/|^libs/[^/]+/test/)' } },
};
