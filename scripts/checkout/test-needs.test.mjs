import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from './project.mjs';
import { needsOf } from './test-needs.mjs';

const NOTHING = { broker: false, database: false, exampleTools: false, build: false };
const FILES = {
  'apps/a/src/one.spec.ts': "import { one } from './one';",
  'apps/a/src/one.ts': "const url = process.env.TEST_DATABASE_URL; readFileSync('dist/apps/a');",
  'apps/a/src/two.int-spec.ts': "import { rows } from '../test/rows';",
  'apps/a/test/rows.ts': "import { createTestDatabase } from '@app/testing/database';",
  'libs/testing/src/database.ts': "requiredEnv('TEST_DATABASE_URL')",
  'libs/testing/src/system.ts':
    "import { createTestDatabase } from './database';\nspawn(`dist/apps/${app}/src/main.js`); requiredEnv('TEST_AMQP_URL')",
  'test/e2e/three.e2e-spec.ts': "import { System } from '@app/testing/system';",
};
const needs = (...files) =>
  needsOf(
    files.map((file) => join(ROOT, file)),
    (path) => FILES[path.slice(ROOT.length + 1)],
  );

test('a unit test needs nothing, whatever the code under test mentions', () => {
  assert.deepEqual(needs('apps/a/src/one.spec.ts'), NOTHING);
});

test('a test needs what its helpers ask for, and no more', () => {
  assert.deepEqual(needs('apps/a/src/two.int-spec.ts'), { ...NOTHING, database: true });
});

test('a test of the whole system needs its build and both servers', () => {
  assert.deepEqual(needs('apps/a/src/one.spec.ts', 'test/e2e/three.e2e-spec.ts'), {
    ...NOTHING,
    broker: true,
    database: true,
    build: true,
  });
});
