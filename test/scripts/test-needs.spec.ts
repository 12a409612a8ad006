import { Script } from './script';

const PROGRAM = `
  import { join } from 'node:path';
  import { ROOT } from './scripts/checkout/project.mjs';
  import { needsOf } from './scripts/checkout/test-needs.mjs';
  const [files, texts] = JSON.parse(process.argv[1]);
  const needs = needsOf(files.map((file) => join(ROOT, file)), (path) => texts[path.slice(ROOT.length + 1)]);
  console.log(JSON.stringify(needs));
`;

const UNIT_TESTS = `
  import { readFileSync, readdirSync } from 'node:fs';
  import { join } from 'node:path';
  import { ROOT } from './scripts/checkout/project.mjs';
  import { needsOf } from './scripts/checkout/test-needs.mjs';
  const textOf = (path) => { try { return readFileSync(path, 'utf8'); } catch { return undefined; } };
  const files = ['apps', 'libs', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => name.endsWith('.spec.ts')).map((name) => join(ROOT, folder, name)));
  const needy = files.filter((file) => Object.values(needsOf([file], textOf)).includes(true));
  console.log(JSON.stringify({ files: files.length, needy }));
`;

// The texts are put together here: in one piece they would give needs to this very file.
const imports = (path: string) => `import { something } from '${path}';`;
const reads = (variable: string) => `requiredEnv('TEST_${variable}');`;
const opens = (path: string) => `readFileSync(\`dist/${path}\`);`;

const NOTHING = { broker: false, database: false, exampleTools: false, ownServers: false, build: false };
const FILES = {
  'apps/a/src/one.spec.ts': imports('./one'),
  'apps/a/src/typed.spec.ts': `import type { Something } from '@app/testing/system/system';\nexport type { Other } from '../test/rows';`,
  'apps/a/src/one.ts': reads('DATABASE_URL') + opens('apps/a'),
  'apps/a/src/two.int-spec.ts': imports('../test/rows'),
  'apps/a/test/rows.ts': imports('@app/testing/database/database'),
  'libs/testing/src/database/database.ts': reads('DATABASE_URL'),
  'libs/testing/src/system/system.ts': imports('../database/database') + opens('apps/a/src/main.js') + reads('AMQP_URL'),
  'test/e2e/three.e2e-spec.ts': imports('@app/testing/system/system'),
};

const needs = (...files: string[]) => new Script(PROGRAM, [JSON.stringify([files, FILES])]).next();

describe('the needs of a test', () => {
  afterEach(() => Script.endAll());

  it('are none for a unit test, whatever the code under test mentions', async () => {
    expect(await needs('apps/a/src/one.spec.ts')).toEqual(NOTHING);
  });

  it('are none for a unit test that only names types of helpers', async () => {
    expect(await needs('apps/a/src/typed.spec.ts')).toEqual(NOTHING);
  });

  it('are none for all unit tests of this checkout', async () => {
    const { files, needy } = (await new Script(UNIT_TESTS).next()) as { files: number; needy: string[] };
    expect(files).toBeGreaterThan(50);
    expect(needy).toEqual([]);
  });

  it('are those of its helpers, and no more', async () => {
    expect(await needs('apps/a/src/two.int-spec.ts')).toEqual({ ...NOTHING, database: true });
  });

  it('are the build and both servers for a test of the whole system', async () => {
    expect(await needs('apps/a/src/one.spec.ts', 'test/e2e/three.e2e-spec.ts')).toEqual({
      ...NOTHING,
      broker: true,
      database: true,
      build: true,
    });
  });
});
