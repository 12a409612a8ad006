const { default: Sequencer } = require('@jest/test-sequencer');

/**
 * The order of test files. In a new checkout Jest knows no durations and begins with the largest files. Those that start processes take longest, and
 * begun last they leave the other workers idle at the end.
 */
module.exports = class LongestFirst extends Sequencer {
  async sort(tests) {
    const { startsProcesses } = await import('./test-needs.mjs');
    const sorted = super.sort(tests);
    const first = sorted.filter(({ path }) => startsProcesses(path));
    return [...first, ...sorted.filter((test) => !first.includes(test))];
  }
};
