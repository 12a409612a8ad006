import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformFile } from '@swc/core';
import { ROOT } from '../../scripts/lib/project.mjs';
import { PLAIN_BUILD } from './systems.mjs';

/** Outside dist/, which is what goes into the image. */
export async function buildPlain() {
  const [from, to] = [join(ROOT, 'bench/plain'), join(PLAIN_BUILD, 'plain')];
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(from)) {
    const { code } = await transformFile(join(from, file), { configFile: join(ROOT, '.swcrc'), sourceMaps: false });
    writeFileSync(join(to, file.replace(/\.ts$/, '.js')), code);
  }
}
