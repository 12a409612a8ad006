import { Script } from './script';

const PROGRAM = `
  import { readdirSync } from 'node:fs';
  import { join, relative } from 'node:path';
  import config from './jest.config.cjs';
  import { ROOT } from './scripts/checkout/project.mjs';
  import { byServers } from './scripts/checkout/test-needs.mjs';
  const shown = (files) => files.map((file) => relative(ROOT, file)).sort();
  const all = config.projects.map(({ displayName }) => displayName);
  const { own, shared } = await byServers(all);
  const found = ['apps', 'libs', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => /spec[.]ts$/.test(name) && !name.includes(".cases-")).map((name) => join(ROOT, folder, name)));
  console.log(JSON.stringify({ own: shown(own), shared: shown(shared), found: shown(found) }));
`;

describe('the test files', () => {
  it('belong to a project each, and are in exactly one of the two lists of npm test', async () => {
    const lists = (await new Script(PROGRAM).next()) as Record<'own' | 'shared' | 'found', string[]>;
    expect([...lists.own, ...lists.shared].toSorted()).toEqual(lists.found);
    expect(lists.own).toContain('libs/rabbitmq/test/recovery.int-spec.ts');
    expect(lists.own).toContain('test/e2e/faults.e2e-spec.ts');
    expect(lists.shared).toContain('test/e2e/operations.e2e-spec.ts');
  });
});
