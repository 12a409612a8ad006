import { contentsOf } from './cluster.mjs';
import { hardeningProblems } from './hardening.mjs';
import { versionProblems } from './images.mjs';
import { monitoringProblems } from './monitoring.mjs';
import { peerProblems } from './network.mjs';
import { processProblems } from './processes.mjs';
import { referenceProblems } from './references.mjs';
import { scalingProblems } from './scaling.mjs';

/**
 * The problems of the objects of an overlay, apart from their types.
 * @param {import('./overlays.mjs').Manifest[]} manifests
 * @param {{ name: string, version: string }} project
 * @returns {string[]}
 */
export function manifestProblems(manifests, project) {
  const contents = contentsOf(manifests);
  return [
    ...referenceProblems(manifests, contents),
    ...peerProblems(manifests, contents),
    ...processProblems(manifests, contents, project.name),
    ...hardeningProblems(manifests, project.name),
    ...versionProblems(manifests, project),
    ...monitoringProblems(manifests, contents),
    ...scalingProblems(manifests, contents.namespace),
  ];
}
