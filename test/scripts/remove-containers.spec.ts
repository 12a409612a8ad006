import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { testDirectory } from './script';

/** With an engine that only writes down what it is asked for. */
describe('scripts/containers/remove.sh', () => {
  const directory = testDirectory();
  const asked = directory.path('asked');
  const remove = (...args: string[]) => {
    rmSync(asked, { force: true });
    const PATH = `${directory.path('')}:${process.env.PATH}`;
    const { status } = spawnSync('sh', ['scripts/containers/remove.sh', ...args], { env: { ...process.env, PATH } });
    return { done: status === 0, asked: existsSync(asked) ? readFileSync(asked, 'utf8') : '' };
  };

  beforeAll(() => {
    writeFileSync(directory.path('docker'), `#!/bin/sh\necho "$@" >> '${asked}'\n`);
    chmodSync(directory.path('docker'), 0o755);
  });
  afterAll(() => directory.remove());

  // Every container, network and volume of the engine has a name with nothing in it.
  it.each([[[]], [['']]])('touches nothing without a word: %j', (args) => {
    expect(remove(...args)).toEqual({ done: false, asked: '' });
  });

  it('asks for what has the word', () => {
    const { done, asked } = remove('one-run');
    expect(done).toBe(true);
    expect(asked.trim().split('\n')).toHaveLength(4);
    expect(asked.match(/one-run$/gm)).toHaveLength(4);
  });
});
