import { Script } from './script';

const PROGRAM = `
  import { existsSync, readdirSync, readFileSync } from 'node:fs';
  import { MUTANTS } from './test/faults/harness/mutants.mjs';
  const isThere = ([path, from]) => readFileSync(path, 'utf8').includes(from);
  const faults = readdirSync('test/faults').filter((name) => name.endsWith('.fault-spec.ts'));
  // A title may be put together of two texts.
  const has = (text, title) =>
    Array.from(title, (_, at) => at).some((at) => [title.slice(0, at), title.slice(at)].every((part) => text.includes(part.trim())));
  const hasTest = ([file, title]) =>
    file.endsWith('.ts')
      ? existsSync(file) && has(readFileSync(file, 'utf8'), title)
      : faults.some((name) => new RegExp(file).test(name));
  const names = (mutants) => mutants.map(({ name }) => name);
  console.log(JSON.stringify({
    stale: names(MUTANTS.filter(({ edits }) => edits.length === 0 || !edits.every(isThere))),
    untested: names(MUTANTS.filter(({ test }) => !hasTest(test))),
  }));
`;

describe('the mutants of the fault tests', () => {
  afterEach(() => Script.endAll());

  it('change a text that is in the code, and name a test: npm run test:mutants takes too long for every change of the code', async () => {
    expect(await new Script(PROGRAM).next()).toEqual({ stale: [], untested: [] });
  });
});
