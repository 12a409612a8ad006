import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { transformFile } from '@swc/core';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { BUILD } from './baselines.mjs';

/** Compiles what is TypeScript and not part of the product. */
export async function buildBenchmark() {
  const plain = readdirSync(join(ROOT, 'bench/plain')).map((name) => `bench/plain/${name}`);
  for (const file of [...plain, 'test/faults/harness/fault-proxy.ts']) {
    const { code } = await transformFile(join(ROOT, file), { configFile: join(ROOT, '.swcrc'), sourceMaps: false });
    const target = join(BUILD, file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, code);
  }
}
