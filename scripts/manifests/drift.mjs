import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT } from '../checkout/project.mjs';
import { kustomize } from './kubectl.mjs';
import { FOLDER, OVERLAYS, renderingOf } from './overlays.mjs';
import { writtenManifests } from './written.mjs';

/** @returns {string[]} the manifests that are not what they are written from; needs no kubectl */
export const writtenDrift = () =>
  Object.entries(writtenManifests())
    .filter(([path, wanted]) => differs(join(ROOT, path), wanted))
    .map(([path]) => outOfDate(path));

/** @returns {Promise<string[]>} the renderings that are not what kubectl renders */
export async function renderingDrift() {
  const problems = [];
  for (const overlay of OVERLAYS) {
    const path = renderingOf(overlay);
    if (differs(path, await kustomize(join(FOLDER, overlay)))) problems.push(outOfDate(relative(ROOT, path)));
  }
  return problems;
}

/** Writes everything anew. @returns {Promise<string[]>} the files that have changed */
export async function writeManifests() {
  const written = Object.entries(writtenManifests()).filter(([path, content]) => write(join(ROOT, path), content));
  const changed = written.map(([path]) => path);
  // After the files that they include.
  for (const overlay of OVERLAYS) {
    const path = renderingOf(overlay);
    if (write(path, await kustomize(join(FOLDER, overlay)))) changed.push(relative(ROOT, path));
  }
  return changed;
}

/** @param {string} path @param {string} wanted */
const differs = (path, wanted) => !existsSync(path) || readFileSync(path, 'utf8') !== wanted;

/** @param {string} path @param {string} content */
function write(path, content) {
  if (!differs(path, content)) return false;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return true;
}

/** @param {string} path */
const outOfDate = (path) => `${path} is out of date: run npm run manifests and commit it.`;
