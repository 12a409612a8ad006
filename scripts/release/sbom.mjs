import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npmCommand } from '../checkout/npm.mjs';
import { idOf, installedPackages, isInImage, packagesOf, readLockfile } from '../checkout/packages.mjs';

/** @typedef {{ name: string, version: string, group?: string }} Component */

/**
 * The packages of the image as CycloneDX, by npm. `npm sbom --omit=dev` leaves out what development packages need as well
 * (https://github.com/npm/cli/issues/7909), so npm gets a project that has no others.
 * @param {string} root
 * @param {string} directory for the project
 * @param {string} created time of the release
 * @returns {string} a JSON document, the same each time
 */
export function makeSbom(root, directory, created) {
  const project = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const lockfile = readLockfile(root);
  const { packages } = lockfile;
  const kept = Object.entries(packages).filter(([path, entry]) => path === '' || isInImage(entry));
  const [own, ...others] = kept;
  const only = { ...lockfile, packages: Object.fromEntries([[own[0], { ...own[1], devDependencies: undefined }], ...others]) };
  // npm calls the component by the name of the folder.
  const folder = join(directory, project.name);
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...project, devDependencies: undefined }));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(only));
    const [command, ...before] = npmCommand();
    const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application', '--offline'];
    const document = JSON.parse(
      execFileSync(command, [...before, ...args, '--loglevel=error'], { cwd: folder, encoding: 'utf8' }),
    );
    // A random one, which CycloneDX does not ask for.
    delete document.serialNumber;
    document.metadata.timestamp = created;
    return `${JSON.stringify(document, null, 2)}\n`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Whether a document has exactly the packages of the image.
 * @param {string} sbom
 * @param {string} root
 * @param {string} [installed] a folder where the packages are installed as the Dockerfile does; absent: what package-lock.json says of them
 * @returns {string[]}
 */
export function sbomProblems(sbom, root, installed) {
  /** @type {{ components: Component[] }} */
  const { components } = JSON.parse(sbom);
  const named = new Set(components.map(({ group, name, version }) => idOf({ name: group ? `${group}/${name}` : name, version })));
  const wanted = new Set((installed ? installedPackages(installed) : packagesOf(readLockfile(root), isInImage)).map(idOf));
  if (wanted.size === 0) return ['the image has no packages'];
  return [
    ...[...wanted].filter((id) => !named.has(id)).map((id) => `the SBOM lacks ${id}, which is in the image`),
    ...[...named].filter((id) => !wanted.has(id)).map((id) => `the SBOM has ${id}, which is not in the image`),
  ];
}
