import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testDirectory } from './script';

const PROGRAM = `import { readStackSecrets } from './scripts/stack/stack-secrets.mjs'; readStackSecrets();`;

describe('the secrets of npm start', () => {
  const directory = testDirectory();
  const checkout = directory.path('checkout');
  const file = join(checkout, '.local/stack.json');

  afterAll(() => directory.remove());

  it('stay as they are when nothing can be written', () => {
    const kept = JSON.stringify({ passwords: { postgres: 'kept' } });
    for (const folder of ['checkout', 'processes', 'stack'])
      cpSync(`scripts/${folder}`, join(checkout, 'scripts', folder), { recursive: true });
    mkdirSync(join(checkout, '.local'));
    writeFileSync(file, kept);
    // The limit of bytes in a file stands for a full disk.
    const { status } = spawnSync('sh', ['-c', `ulimit -f 0; exec "$0" --input-type=module -e "$1"`, process.execPath, PROGRAM], {
      cwd: checkout,
    });
    expect(status).not.toBe(0);
    expect(readFileSync(file, 'utf8')).toBe(kept);
  });
});
