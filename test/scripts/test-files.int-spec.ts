import { Script } from './script';

const PROGRAM = `
  import { readdirSync } from 'node:fs';
  import { join, relative } from 'node:path';
  import config from './jest.config.cjs';
  import { ROOT } from './scripts/checkout/project.mjs';
  import { byDatabase } from './scripts/checkout/test-needs.mjs';
  const shown = (files) => files.map((file) => relative(ROOT, file)).sort();
  const all = config.projects.map(({ displayName }) => displayName);
  const { database, others } = await byDatabase(all);
  const found = ['apps', 'libs', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => /spec[.]ts$/.test(name) && !name.includes(".cases-")).map((name) => join(ROOT, folder, name)));
  console.log(JSON.stringify({ database: shown(database), others: shown(others), found: shown(found) }));
`;

describe('the test files', () => {
  it('belong to a project each, and are in exactly one of the two lists of npm test', async () => {
    const lists = (await new Script(PROGRAM).next()) as Record<'database' | 'others' | 'found', string[]>;
    expect([...lists.database, ...lists.others].toSorted()).toEqual(lists.found);
    expect(lists.others).toContain('libs/rabbitmq/test/recovery.int-spec.ts');
    expect(lists.others).toContain('test/e2e/faults.e2e-spec.ts');
    expect(lists.database).toContain('test/e2e/operations.e2e-spec.ts');
  });
});
