import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isInImage, packagePath, readLockfile } from './packages.mjs';
import { APPS, ROOT } from './project.mjs';

/**
 * Puts each app and its packages into one file, `<app>.js`. Node needs 2 s of a processor to find and compile the 1,300 files of a
 * service, and 1 s with the bundle.
 * @param {string} dist folder with the compiled sources
 */
export async function bundle(dist) {
  // Not at the top: npm start loads this file before it installs packages.
  const { build } = await import('esbuild');
  await build({
    entryPoints: Object.fromEntries(APPS.map((service) => [service, join(dist, 'apps', service, 'src/main.js')])),
    outdir: dist,
    bundle: true,
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
    // The gateway serves files of swagger-ui-dist from the package.
    logOverride: { 'require-resolve-not-external': 'silent' },
    plugins: [onlyImagePackages()],
  });
  const { withoutPackages } = await import('./source-map.mjs');
  for (const app of APPS) {
    const file = join(dist, `${app}.js.map`);
    await writeFile(file, JSON.stringify(withoutPackages(JSON.parse(await readFile(file, 'utf8')))));
  }
}

/**
 * Leaves imports of packages that the image does not have as they are: Nest and TypeORM have optional drivers, and load them when they are
 * used. Some of these are installed here for development, and the bundle would have them without a line in the SBOM.
 * @returns {import('esbuild').Plugin}
 */
function onlyImagePackages() {
  const { packages } = readLockfile(ROOT);
  const asked = {};
  return {
    name: 'only packages of the image',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path, pluginData, ...args }) => {
        if (pluginData === asked) return undefined;
        const found = await build.resolve(path, { ...args, pluginData: asked });
        const entry = packages[packagePath(found.path) ?? ''];
        return found.errors.length > 0 || !entry || !isInImage(entry) ? { path, external: true } : undefined;
      });
    },
  };
}
