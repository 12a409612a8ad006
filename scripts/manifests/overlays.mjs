import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ROOT } from '../checkout/project.mjs';

export const FOLDER = join(ROOT, 'deploy/kubernetes');

export const OVERLAYS = ['try-out', 'production'];

/** @param {string} overlay @returns {string} the committed rendering */
export const renderingOf = (overlay) => join(FOLDER, 'rendered', `${overlay}.yaml`);

/**
 * One object of Kubernetes, as far as the checks know it.
 * @typedef {{ apiVersion: string, kind: string, metadata: { name: string, namespace?: string, labels?: Record<string, string> }, [field: string]: any }} Manifest
 */

/**
 * @param {string} text
 * @returns {Manifest[]}
 */
export const manifestsOf = (text) =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter(Boolean);

/**
 * The objects of an overlay, with the Secrets that its operator creates by a script.
 * @param {string} overlay
 * @returns {Manifest[]}
 */
export function overlayManifests(overlay) {
  const rendered = manifestsOf(readFileSync(renderingOf(overlay), 'utf8'));
  if (overlay !== 'production') return rendered;
  const namespace = rendered.find(({ kind }) => kind === 'Namespace')?.metadata.name ?? '';
  const secrets = execFileSync('sh', [join(FOLDER, 'production/secrets.sh'), namespace], { encoding: 'utf8' });
  return [...rendered, ...manifestsOf(secrets)];
}

/** @param {Manifest} manifest */
export const nameOf = ({ kind, metadata }) => `${kind} ${metadata.name}`;

/**
 * The template of the pods of an object; undefined for an object without pods of its own.
 * @param {Manifest} manifest
 * @returns {{ metadata: { labels: Record<string, string> }, spec: any } | undefined}
 */
export const podOf = ({ kind, spec }) => (['Deployment', 'StatefulSet', 'Job'].includes(kind) ? spec.template : undefined);
