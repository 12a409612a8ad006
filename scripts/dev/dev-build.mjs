import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { transform } from '@swc/core';
import { builtFrom, stampBuild } from '../checkout/build.mjs';
import { ROOT } from '../checkout/project.mjs';
import { fingerprintOf, hashOf, isSetting, readSources } from '../checkout/sources.mjs';

/** @param {string} source */
const OUTPUT_OF = (source) => source.replace(/\.ts$/, '.js');

/**
 * Keeps dist/ in step with the sources, a file at a time. The content of the files decides: events of a watcher only say when to look.
 * The stamp of the build is there exactly while dist/ is what one build of the sources would make.
 */
export class DevBuild {
  /**
   * The hash of each source that dist/ was made from; a source that does not compile is missing.
   * @type {Map<string, string>}
   */
  #built = new Map();
  /** @type {string | undefined} */
  #stamp;

  constructor() {
    const sources = readSources();
    if (builtFrom() !== fingerprintOf(sources)) return;
    this.#built = sources;
    this.#stamp = builtFrom();
  }

  /**
   * @param {Iterable<string>} saved compiled again even when their content is the same: a save is a request to run them
   * @returns {Promise<{ sources: string[], outputs: string[], errors: { path: string, message: string }[], settings: string[] }>}
   *   what was built of which sources, what does not compile, and which settings have changed that only a full build reads
   */
  async update(saved) {
    const sources = readSources();
    // After a build by others, npm test for one, which may have failed half-way.
    if (builtFrom() !== this.#stamp) this.#built = new Map([...sources].filter(([path]) => isSetting(path)));
    const again = new Set(saved);
    const changed = [...sources].filter(([path, hash]) => again.has(path) || this.#built.get(path) !== hash);
    const settings = changed.map(([path]) => path).filter(isSetting);
    const toCompile = changed.map(([path]) => path).filter((path) => !isSetting(path));
    const gone = [...this.#built.keys()].filter((path) => !sources.has(path));
    if (toCompile.length + gone.length > 0) this.#leaveStamp(undefined);

    for (const path of gone) {
      for (const output of [OUTPUT_OF(path), `${OUTPUT_OF(path)}.map`]) rmSync(join(ROOT, 'dist', output), { force: true });
      this.#built.delete(path);
    }
    /** @type {{ path: string, message: string }[]} */
    const errors = [];
    for (const path of toCompile) {
      try {
        this.#built.set(path, await compile(path));
      } catch (error) {
        this.#built.delete(path);
        errors.push({ path, message: error.message.split('\n\nCaused by:')[0].trim() }); // and not the compiler's own stack
      }
    }
    const whole = [...sources.keys()].every((path) => this.#built.has(path));
    if (toCompile.length + gone.length > 0 && whole) this.#leaveStamp(fingerprintOf(this.#built));
    const built = [...toCompile, ...gone].filter((path) => !errors.some((error) => error.path === path));
    return { sources: built, outputs: built.map(OUTPUT_OF), errors, settings };
  }

  /**
   * @param {string} output from dist/
   * @returns {string | undefined} undefined when there is no such file
   */
  codeOf(output) {
    try {
      return readFileSync(join(ROOT, 'dist', output), 'utf8');
    } catch {
      return undefined;
    }
  }

  /** @param {string | undefined} fingerprint */
  #leaveStamp(fingerprint) {
    this.#stamp = fingerprint;
    stampBuild(fingerprint);
  }
}

/**
 * The same output as that of `nest build`, which hands the same .swcrc to the same compiler.
 * @param {string} path of the source, from the root
 * @returns {Promise<string>} the hash of what was compiled
 */
async function compile(path) {
  const source = readFileSync(join(ROOT, path), 'utf8');
  const { code, map } = await transform(source, { cwd: ROOT, filename: path, sourceFileName: path });
  const target = join(ROOT, 'dist', OUTPUT_OF(path));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(`${target}.map`, /** @type {string} */ (map)); // .swcrc asks for source maps
  writeFileSync(target, `${code}\n//# sourceMappingURL=${basename(target)}.map`);
  return hashOf(source);
}
