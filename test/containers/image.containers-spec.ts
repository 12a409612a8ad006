import { readFileSync } from 'node:fs';
import { IMAGE, docker, note } from './harness/docker';

const inImage = (...command: string[]) =>
  docker('run', '--rm', '--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--network=none', IMAGE, ...command);

describe('the image', () => {
  it('has Node 24, and a user that is a number and not root', async () => {
    const [{ Config, Size }] = JSON.parse(await docker('image', 'inspect', IMAGE)) as {
      Config: { User: string };
      Size: number;
    }[];
    note('size of the image', `${(Size / 1e6).toFixed()} MB`);
    expect(Config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(await inImage('node', '--print', '[process.version, process.getuid(), process.getgid()].join()')).toMatch(
      /^v24\.\d+\.\d+,1000,1000$/,
    );
  });

  it('has the packages of the product and none of its development, and no package manager', async () => {
    const script = "const fs = require('fs'); console.log(JSON.stringify(fs.readdirSync('node_modules', { recursive: true })))";
    const paths = new Set(JSON.parse(await inImage('node', '--eval', script)) as string[]);
    const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean; peer?: boolean }>;
    };
    const installed = (want: (kind: (typeof lock.packages)[string]) => boolean) =>
      Object.entries(lock.packages)
        .filter(([path, kind]) => path.startsWith('node_modules/') && want(kind))
        .map(([path]) => path.slice('node_modules/'.length))
        .filter((path) => paths.has(path));
    expect(installed(({ dev }) => Boolean(dev))).toEqual([]);
    expect(installed(({ dev }) => !dev)).toContain('pg');
    await expect(inImage('npm', '--version')).rejects.toThrow(/not found/);
  });

  it('lets no user of it change its own code, even with a file system that can be written', async () => {
    const script = "require('fs').writeFileSync('/app/dist/gateway.js', '')";
    await expect(docker('run', '--rm', '--network=none', IMAGE, 'node', '--eval', script)).rejects.toThrow('EACCES');
  });

  it('starts as any user, such as one that a platform draws', async () => {
    expect(
      await docker(
        'run',
        '--rm',
        '--user=12345:0',
        '--read-only',
        '--cap-drop=ALL',
        IMAGE,
        'node',
        'scripts/setup.mjs',
        '--help',
      ),
    ).toContain('Brings the database');
  });
});
