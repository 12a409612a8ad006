import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** @typedef {{ name: string, version: string, license: string }} Package */
/** @typedef {{ version: string, license?: string, name?: string, dev?: boolean, optional?: boolean, devOptional?: boolean }} Entry of a lockfile */
/** @typedef {{ packages: Record<string, Entry> }} Lockfile */

/** @param {string} root @returns {Lockfile} */
export const readLockfile = (root) => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

/** Whether the image has it: Dockerfile installs without development packages and optional ones. @param {Entry} entry */
export const isInImage = ({ dev, optional, devOptional }) => !dev && !optional && !devOptional;

/** @param {{ name: string, version: string }} one */
export const idOf = ({ name, version }) => `${name}@${version}`;

/**
 * Every package of a lockfile, once for each version, in the order of their names.
 * @param {Lockfile} lockfile
 * @param {(entry: Entry) => boolean} [wanted] absent: all
 * @returns {Package[]}
 */
export function packagesOf({ packages }, wanted = () => true) {
  const found = Object.entries(packages)
    .filter(([path, entry]) => path !== '' && wanted(entry))
    .map(([path, { name = nameIn(path), version, license = 'none' }]) => ({ name, version, license }));
  const unique = new Map(found.map((one) => [idOf(one), one]));
  return [...unique.values()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

/** @param {string} path below which node_modules are looked through */
export function installedPackages(path) {
  const modules = join(path, 'node_modules');
  /** @type {{ name: string, version: string }[]} */
  const found = [];
  if (!existsSync(modules)) return found;
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  for (const directory of names.filter((name) => !name.startsWith('.')).map((name) => join(modules, name))) {
    const { name, version } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    found.push({ name, version }, ...installedPackages(directory));
  }
  return found;
}

/** The folder of the package that a file is in, as a lockfile names it. @param {string} file */
export const packagePath = (file) => /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];

/**
 * A bundle has its packages in it, and they come from an installation with development packages.
 * @param {string} root
 * @param {string[]} services whose bundles in dist/ are looked at: esbuild writes the name of each file above its content
 * @returns {string[]} a problem for each package in a bundle that the image does not have
 */
export function bundleProblems(root, services) {
  const { packages } = readLockfile(root);
  return services.flatMap((service) => {
    const files = readFileSync(join(root, `dist/${service}.js`), 'utf8').match(/(?<=^ *\/\/ )\S*node_modules\/\S+$/gm) ?? [];
    const paths = new Set(files.map((file) => packagePath(file) ?? ''));
    if (paths.size === 0) return [`dist/${service}.js names no package`];
    return [...paths]
      .filter((path) => !packages[path] || !isInImage(packages[path]))
      .map((path) => `dist/${service}.js has ${nameIn(path)}, which is no package of the image`);
  });
}

/** @param {string} path in a lockfile */
const nameIn = (path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
