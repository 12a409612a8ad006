import { Script } from './script';

const PROGRAM = `
  import { modulesOf } from './scripts/dev/module-graph.mjs';
  const compiled = JSON.parse(process.argv[2]);
  console.log(JSON.stringify([...modulesOf(process.argv[1], (path) => compiled[path])].sort()));
`;

const COMPILED = {
  'apps/a/src/main.js': 'const _one = require("./one");\nrequire("reflect-metadata");',
  'apps/a/src/one.js': 'const _x = require("../../../libs/x/src/x");\nconst _main = require("./main");',
  'apps/b/src/main.js': 'Promise.resolve().then(()=>_interop(require("../../../libs/y/src/y.js")));',
  'libs/x/src/x.js': '',
  'libs/y/src/y.js': 'const _gone = require("./gone");',
};

const modulesOf = (entry: string) => new Script(PROGRAM, [entry, JSON.stringify(COMPILED)]).next();

describe('the modules of a program', () => {
  afterEach(() => Script.endAll());

  it('are the files that it requires, and those that they require, once, cycles or not', async () => {
    expect(await modulesOf('apps/a/src/main.js')).toEqual(['apps/a/src/main.js', 'apps/a/src/one.js', 'libs/x/src/x.js']);
  });

  it('include dynamic imports, and a file that is not there, because it may come back', async () => {
    expect(await modulesOf('apps/b/src/main.js')).toEqual(['apps/b/src/main.js', 'libs/y/src/gone.js', 'libs/y/src/y.js']);
  });
});
