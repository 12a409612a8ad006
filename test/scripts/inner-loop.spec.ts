import { Script } from './script';

const READER = `
  import { hashesOf } from './scripts/checkout/sources.mjs';
  console.log(JSON.stringify([...hashesOf(['package.json', 'libs/gone.ts']).keys()]));
`;

const LOOP = `
  import { DevBuild } from './scripts/dev/dev-build.mjs';
  import { InnerLoop } from './scripts/dev/inner-loop.mjs';
  const write = process.stdout.write.bind(process.stdout);
  const say = (word) => write(JSON.stringify(word.trim()) + String.fromCharCode(10));
  process.stdout.write = say;
  let tries = 0;
  DevBuild.prototype.update = async () => {
    if (++tries === 1) throw new Error('ENOENT: libs/gone');
    say('tried again');
    return { sources: [], outputs: [], errors: [], settings: [] };
  };
  const loop = new InnerLoop({});
  await loop.start();
  // Each start looks at the sources, as each save does.
  process.stdin.once('data', () => void loop.start());
`;

describe('the inner loop', () => {
  afterEach(() => Script.endAll());

  it('leaves out a source that is gone when it is read', async () => {
    expect(await new Script(READER).next()).toEqual(['package.json']);
  });

  it('says that the sources could not be built, and builds at the next save', async () => {
    const script = new Script(LOOP);
    expect(await script.next()).toContain('the sources cannot be built: ENOENT: libs/gone: the next save tries again');
    script.say('save');
    expect(await script.next()).toBe('tried again');
  });
});
