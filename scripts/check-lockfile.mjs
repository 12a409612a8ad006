// Part of `npm run lint`: package-lock.json must install the same bytes for everybody, wherever it was written.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './checkout/project.mjs';
import { commandLine } from './processes/command-line.mjs';

const REGISTRY = 'https://registry.npmjs.org/';

commandLine({
  command: 'node scripts/check-lockfile.mjs',
  about: 'Checks that package-lock.json installs the same bytes for everybody.',
  examples: { '': 'a part of npm run lint' },
});
const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
const problems = [];
for (const [path, entry] of Object.entries(packages)) {
  if (path === '' || entry.link) continue;
  // No address at all is fine: npm then asks the registry that it is configured with.
  if (entry.resolved && !entry.resolved.startsWith(REGISTRY)) problems.push(`${path} comes from ${new URL(entry.resolved).host}`);
  if (!entry.integrity && !entry.inBundle) problems.push(`${path} has no integrity hash`);
}

if (problems.length > 0) {
  console.error(`package-lock.json:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  console.error('Write it again with npm install --registry=https://registry.npmjs.org/ --omit-lockfile-registry-resolved.');
  process.exitCode = 1;
}
