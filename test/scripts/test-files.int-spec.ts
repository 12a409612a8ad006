import { Script } from './script';

const PROGRAM = `
  import { execFileSync } from 'node:child_process';
  import { readdirSync } from 'node:fs';
  import { join, relative } from 'node:path';
  import { ROOT } from './scripts/checkout/project.mjs';
  import { startsProcesses } from './scripts/checkout/test-needs.mjs';
  const shown = (files) => files.map((file) => relative(ROOT, file)).sort();
  const ran = JSON.parse(execFileSync(process.execPath, ['node_modules/jest/bin/jest.js', '--listTests', '--json'], { encoding: 'utf8' }));
  const found = ['apps', 'libs', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => /spec[.]ts$/.test(name) && !name.includes(".cases-")).map((name) => join(ROOT, folder, name)));
  console.log(JSON.stringify({ ran: shown(ran), found: shown(found), startProcesses: shown(ran.filter(startsProcesses)) }));
`;

describe('the test files', () => {
  let files: Record<'ran' | 'found' | 'startProcesses', string[]>;
  beforeAll(async () => {
    files = (await new Script(PROGRAM).next()) as typeof files;
  });
  afterAll(() => Script.endAll());

  it('belong to a project each', () => {
    expect(files.ran).toEqual(files.found);
  });

  it('that start processes are known, because npm test begins with them', () => {
    expect(files.startProcesses).toContain('libs/rabbitmq/test/recovery.int-spec.ts');
    expect(files.startProcesses).toContain('test/e2e/operations.e2e-spec.ts');
    expect(files.startProcesses).not.toContain('libs/rabbitmq/test/failures.int-spec.ts');
  });
});
