import { SourceMap, type SourceMapPayload } from 'node:module';
import { Script } from './script';

afterEach(() => Script.endAll());

it('maps our lines of a bundle and none of a package, also where its own map names other paths', async () => {
  // One line each, of: a package, ours, a package with a map of its own, ours.
  const map = {
    version: 3,
    names: [],
    sources: [
      '../node_modules/amqplib/lib/error.js',
      '../libs/amqp/src/calls/caller.ts',
      '../src/error/TypeORMError.ts',
      '../apps/users/src/main.ts',
    ],
    mappings: 'AAAA;ACAA;ACAA;ACAA',
  };
  const script = new Script(`
    import { withoutPackages } from './scripts/checkout/source-map.mjs';
    console.log(JSON.stringify(withoutPackages(${JSON.stringify(map)})));`);
  const read = new SourceMap((await script.next()) as SourceMapPayload);
  const sources = [0, 1, 2, 3].map((line) => (read.findEntry(line, 5) as { originalSource?: string }).originalSource);
  expect(sources).toEqual([undefined, '../libs/amqp/src/calls/caller.ts', undefined, '../apps/users/src/main.ts']);
});
