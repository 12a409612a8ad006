import { Script } from './script';

describe('the changelog', () => {
  afterEach(() => Script.endAll());

  const problemsOf = (...entries: string[]) =>
    new Script(
      `import { longEntries } from './scripts/release/changelog.mjs';
       console.log(JSON.stringify(longEntries(process.argv[1])));`,
      [['# Changelog', '## [Unreleased]', ...entries, '## [0.1.0] - 2026-01-01', `- ${'old '.repeat(200)}`].join('\n\n')],
    ).next();

  it('has entries of a line or two for what is not released', async () => {
    expect(await problemsOf('- Short.', `- Two lines,\n  of ${'text '.repeat(40)}.`)).toEqual([]);
    expect(await problemsOf('- Short.', `- Ten lines${'\n  of some text and more of it, line by line'.repeat(11)}`)).toEqual([
      expect.stringMatching(/^CHANGELOG\.md: the entry "- Ten lines of some text .*…" has \d+ characters, more than \d+\.$/),
    ]);
  });
});
