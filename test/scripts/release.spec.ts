import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Script, testDirectory } from './script';

const FILES = [
  'scripts',
  'package.json',
  'package-lock.json',
  'docker-compose.yml',
  'docs/kubernetes.md',
  'deploy/kubernetes',
  'libs/client/package.json',
  'apps/users/src/db/migrations',
  'apps/notifications/src/db/migrations',
];
const LATER = '99.0.0';
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

/** The files of this checkout that a release reads, in a repository of their own. */
describe('npm run release', () => {
  const directory = testDirectory();
  const root = directory.path('checkout');
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args], { cwd: root, encoding: 'utf8' });
  const run = (script: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [`scripts/${script}.mjs`, ...args], {
      cwd: root,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  const read = (file: string) => readFileSync(`${root}/${file}`, 'utf8');
  const edit = (file: string, from: string | RegExp, to: string) =>
    writeFileSync(`${root}/${file}`, read(file).replace(from, to));
  const problemsOf = ({ stderr }: { stderr: string }) =>
    stderr
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.trim());

  beforeAll(() => {
    for (const file of FILES) {
      mkdirSync(dirname(`${root}/${file}`), { recursive: true });
      cpSync(file, `${root}/${file}`, { recursive: true });
    }
    // That of the checkout may be that of a release, which has nothing unreleased.
    writeFileSync(`${root}/CHANGELOG.md`, '# Changelog\n\n## [Unreleased]\n\n- Something.\n');
    git('init', '--quiet');
    git('add', '.');
    git('commit', '--quiet', '--message', 'all');
  });
  afterEach(() => git('reset', '--quiet', '--hard', 'HEAD'));
  afterAll(async () => {
    await Script.endAll();
    directory.remove();
  });

  it('says which files a version would change, and changes none of them', () => {
    const { status, stdout, stderr } = run('release', 'prepare', LATER, '--dry-run');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const file of ['package.json', 'package-lock.json', 'libs/client/package.json', 'docker-compose.yml', 'CHANGELOG.md'])
      expect(stdout).toContain(`\n  ${file}\n`);
    expect(git('status', '--porcelain')).toBe('');
  });

  it('names every reason against a version at once', () => {
    git('tag', 'v0.0.9');
    edit('CHANGELOG.md', /(?<=## \[Unreleased\]\n)[^]*/, `\n## [0.0.9] - 2026-01-01\n\n- First.\n`);
    edit('docker-compose.yml', `collaboration-backend:${version}`, 'collaboration-backend:other');
    const refused = run('release', 'prepare', '0.0.9');
    expect(refused.status).toBe(1);
    expect(problemsOf(refused)).toEqual([
      `docker-compose.yml does not have the version ${version} of package.json`,
      'files that are changed and not committed: 2',
      'CHANGELOG.md has no entry under [Unreleased]',
      'CHANGELOG.md has a section [0.0.9] already',
      `package.json has the version ${version}, which comes after 0.0.9`,
      'the newest release of CHANGELOG.md is 0.0.9',
      'there is a tag v0.0.9 already',
    ]);
  });

  it('prepares a version, and then builds that commit only', () => {
    // This commit is no release: nobody has prepared it.
    edit('scripts/check-migrations.mjs', /ACCEPTED = \d+/, 'ACCEPTED = 1');
    git('tag', `v${version}`, git('commit-tree', 'HEAD^{tree}', '-m', 'another').trim());
    const early = run('release', 'build', '--dry-run');
    expect(early.status).toBe(1);
    expect(problemsOf(early)).toEqual([
      'files that are changed and not committed: 1',
      `the newest release of CHANGELOG.md is not the version ${version} of package.json: npm run release -- prepare`,
      'ACCEPTED in scripts/check-migrations.mjs is not the newest migration: npm run release -- prepare',
      `the tag v${version} is on another commit`,
    ]);
    git('reset', '--quiet', '--hard', 'HEAD');

    expect(run('release', 'prepare', LATER)).toMatchObject({ status: 0, stderr: '' });
    expect(read('CHANGELOG.md')).toMatch(/^## \[Unreleased\]\n\n## \[99\.0\.0\] - \d{4}-\d\d-\d\d\n/m);
    expect(read('docker-compose.yml')).toContain(`collaboration-backend:${LATER}\n`);
    expect(read('deploy/kubernetes/production/kustomization.yaml')).toContain(`newTag: ${LATER}\n`);
    expect(read('deploy/kubernetes/rendered/production.yaml')).not.toContain(`collaboration-backend:${version}`);
    expect(read('scripts/check-migrations.mjs')).toMatch(/^const ACCEPTED = \d{13};$/m);
    const lock = JSON.parse(read('package-lock.json')) as { version: string; packages: Record<string, { version: string }> };
    expect([lock.version, lock.packages['']?.version]).toEqual([LATER, LATER]);
    git('commit', '--quiet', '--all', '--message', 'Release');

    const { status, stdout, stderr } = run('release', 'build', '--dry-run');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(
      `docker build --pull --build-arg VERSION=${LATER} --build-arg REVISION=${git('rev-parse', 'HEAD').trim()}`,
    );
    expect(stdout).toMatch(
      /--build-arg CREATED=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ --tag REGISTRY\/collaboration-backend:99\.0\.0 \.\n/,
    );
    expect(git('status', '--porcelain')).toBe('');
  });

  it.each([
    [['build', '1.0.0'], 'build has the version of package.json.'],
    [['prepare', 'v1.0.0'], 'prepare needs a VERSION of three numbers, such as 0.3.0.'],
    [['publish'], 'There is no step publish; there are: prepare VERSION, build.'],
  ])('refuses %j with exit code 2', (args, message) => {
    expect(run('release', ...args)).toEqual({ status: 2, stdout: '', stderr: `${message} See npm run release -- --help\n` });
  });

  it('refuses a licence that nobody has looked at, of the image and of a tool', () => {
    edit('package-lock.json', /("node_modules\/amqplib": \{[^]*?"license": ")MIT/, '$1GPL-3.0-only');
    edit('package-lock.json', /("node_modules\/jest": \{[^]*?"license": ")MIT/, '$1UNLICENSED');
    const { status, stdout, stderr } = run('check-licenses');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^ {2}amqplib@[\d.]+, in the image: GPL-3\.0-only\n {2}jest@[\d.]+: UNLICENSED\n$/m);
  });

  it('makes the same SBOM of a commit each time', async () => {
    const program = `
      import { lookAtRelease } from './scripts/release/artefacts.mjs';
      const [root, ...directories] = process.argv.slice(1);
      console.log(JSON.stringify(directories.map((directory) => lookAtRelease(root, directory).sbom)));`;
    const sboms = (await new Script(program, [root, directory.path('one'), directory.path('other')]).next()) as string[];
    expect(new Set(sboms).size).toBe(1);
    const { metadata } = JSON.parse(sboms[0]) as { metadata: { timestamp: string } };
    expect(new Date(metadata.timestamp)).toEqual(new Date(git('log', '-1', '--format=%cI').trim()));
  });

  it('compares the SBOM with the packages that are installed, and each bundle with the image', async () => {
    const put = (name: string, content: string) => {
      mkdirSync(dirname(directory.path(name)), { recursive: true });
      writeFileSync(directory.path(name), content);
    };
    for (const [path, name] of [['a'], ['@s/b'], ['a/node_modules/c'], ['alias', 'd']])
      put(
        `image/node_modules/${path}/package.json`,
        JSON.stringify({ name: name ?? path.replace(/.*node_modules./, ''), version: '1.0.0' }),
      );
    put('image/node_modules/.package-lock.json', '{}');
    put(
      'image/package-lock.json',
      '{"packages":{"node_modules/a":{"version":"1.0.0"},"node_modules/t":{"version":"1.0.0","dev":true}}}',
    );
    put('image/dist/one.js', '// node_modules/a/x.js\n  // node_modules/t/y.js\n// apps/z.js\n');
    put('image/dist/two.js', '// apps/z.js\n');
    const program = `
      import { sbomProblems } from './scripts/release/sbom.mjs';
      import { bundleProblems } from './scripts/checkout/packages.mjs';
      const image = process.argv[1];
      const components = ['a', '@s/b', 'd', 'e'].map((name) => ({ name, version: '1.0.0' }));
      console.log(JSON.stringify([sbomProblems(JSON.stringify({ components }), '', image), bundleProblems(image, ['one', 'two'])]));`;
    expect(await new Script(program, [directory.path('image')]).next()).toEqual([
      ['the SBOM lacks c@1.0.0, which is in the image', 'the SBOM has e@1.0.0, which is not in the image'],
      ['dist/one.js has t, which is no package of the image', 'dist/two.js names no package'],
    ]);
  });
});
