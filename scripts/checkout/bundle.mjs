import { join } from 'node:path';
import { APPS } from './project.mjs';

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
    plugins: [optionalPackages],
  });
}

/**
 * Leaves imports of packages that are not installed as they are: Nest and TypeORM have optional drivers, and load them when they are used.
 * @type {import('esbuild').Plugin}
 */
const optionalPackages = {
  name: 'optional packages',
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, async ({ path, pluginData, ...args }) => {
      if (pluginData === optionalPackages) return undefined;
      const { errors } = await build.resolve(path, { ...args, pluginData: optionalPackages });
      return errors.length > 0 ? { path, external: true } : undefined;
    });
  },
};
