import { Script } from './script';

const PROGRAM = `
  import { readFileSync } from 'node:fs';
  import { MUTANTS } from './test/faults/harness/mutants.mjs';
  const isThere = ([path, from]) => readFileSync(path, 'utf8').includes(from);
  const stale = MUTANTS.filter(({ edits }) => !edits.every(isThere)).map(({ name }) => name);
  console.log(JSON.stringify({ mutants: MUTANTS.length, stale }));
`;

describe('the mutants of the fault tests', () => {
  afterEach(() => Script.endAll());

  it('change a text that is in the code: npm run test:mutants takes too long for every change of the code', async () => {
    expect(await new Script(PROGRAM).next()).toEqual({ mutants: expect.any(Number) as number, stale: [] });
  });
});
