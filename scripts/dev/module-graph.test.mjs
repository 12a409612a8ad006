import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modulesOf } from './module-graph.mjs';

const compiled = {
  'apps/a/src/main.js': 'const _one = require("./one");\nrequire("reflect-metadata");',
  'apps/a/src/one.js': 'const _x = require("../../../libs/x/src/x");\nconst _main = require("./main");',
  'apps/b/src/main.js': 'Promise.resolve().then(()=>_interop(require("../../../libs/y/src/y.js")));',
  'libs/x/src/x.js': '',
  'libs/y/src/y.js': 'const _gone = require("./gone");',
};
const of = (entry) => [...modulesOf(entry, (path) => compiled[path])].sort();

test('a program loads what it requires, and what that requires, once, cycles or not', () => {
  assert.deepEqual(of('apps/a/src/main.js'), ['apps/a/src/main.js', 'apps/a/src/one.js', 'libs/x/src/x.js']);
});

test('a dynamic import counts, and so does a file that is not there: it may come back', () => {
  assert.deepEqual(of('apps/b/src/main.js'), ['apps/b/src/main.js', 'libs/y/src/gone.js', 'libs/y/src/y.js']);
});
