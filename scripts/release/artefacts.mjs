import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from '../checkout/npm.mjs';
import { stage } from '../checkout/progress.mjs';
import { runQuietly } from '../processes/command.mjs';
import { newestRelease } from './changelog.mjs';
import { makeSbom, sbomProblems } from './sbom.mjs';
import { git, renumbered, treeProblems, versionOf, withAcceptedMigrations } from './versions.mjs';

/** Below the checkout, and not in git. */
export const FOLDER = 'dist/release';

/** @typedef {{ name: string, version: string, revision: string, created: string }} Release */

/**
 * Whether the commit that is checked out is a release, without any work that takes long.
 * @param {string} root
 * @param {string} directory for temporary files
 * @returns {{ problems: string[], release: Release, sbom: string }}
 */
export function lookAtRelease(root, directory) {
  const version = versionOf(root);
  const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const revision = git(root, 'rev-parse', 'HEAD');
  // The time of the commit, so that each build of it has the same labels and files.
  const created = git(root, 'log', '-1', '--date=format-local:%Y-%m-%dT%H:%M:%SZ', '--format=%cd');
  const sbom = makeSbom(root, directory, created);
  const { problems } = renumbered(root, version, version);
  problems.push(...treeProblems(root), ...sbomProblems(sbom, root));
  if (newestRelease(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'))?.name !== version)
    problems.push(`the newest release of CHANGELOG.md is not the version ${version} of package.json: npm run release -- prepare`);
  const { file, accepted } = withAcceptedMigrations(root);
  if (!accepted) problems.push(`ACCEPTED in ${file} is not the newest migration: npm run release -- prepare`);
  const tag = `v${version}`;
  if (git(root, 'tag', '--list', tag) && git(root, 'rev-parse', `${tag}^{commit}`) !== revision)
    problems.push(`the tag ${tag} is on another commit`);
  return { problems, release: { name, version, revision, created }, sbom };
}

/**
 * Writes the files of a release: the client, the SBOM, and the checksums of both.
 * @param {string} root
 * @param {Release} release
 * @param {string} sbom
 * @returns {Promise<string[]>} their names
 */
export async function writeArtefacts(root, { name, version }, sbom) {
  const folder = join(root, FOLDER);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await stage('packing the client', async () => {
    await runQuietly(process.execPath, ['scripts/build-client.mjs'], { cwd: root, name: 'The build of the client' });
    await npm(['pack', '--pack-destination', folder, './dist/client'], root);
  });
  writeFileSync(join(folder, `${name}-${version}.cdx.json`), sbom);
  const files = readdirSync(folder).sort();
  const sums = files.map(
    (file) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, file)))
        .digest('hex')}  ${file}\n`,
  );
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
  return [...files, 'SHA256SUMS'];
}

/**
 * Installs the packages as the Dockerfile does, and compares them with the SBOM.
 * @param {string} root
 * @param {string} sbom
 * @param {string} directory for the installation
 * @returns {Promise<string[]>}
 */
export async function installedProblems(root, sbom, directory) {
  const image = join(directory, 'image');
  mkdirSync(image, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(root, file), join(image, file));
  const install = ['ci', '--omit=dev', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund'];
  await stage('installing the packages of the image', () => npm(install, image));
  return sbomProblems(sbom, root, image);
}

/** @param {Release} release @returns {string} what a person does next */
export const nextCommands = ({ name, version, revision, created }) => `Next, by hand:

  (cd ${FOLDER} && sha256sum --check SHA256SUMS)
  git tag --annotate v${version} --message ${version} ${revision}
  git push origin v${version}
  docker build --pull --build-arg VERSION=${version} --build-arg REVISION=${revision} \\
    --build-arg CREATED=${created} --tag REGISTRY/${name}:${version} .
  docker push REGISTRY/${name}:${version}
  npm publish ./${FOLDER}/${name}-client-${version}.tgz
`;
