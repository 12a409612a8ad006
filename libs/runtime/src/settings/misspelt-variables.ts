import { isNear } from './near-name';

/** Shorter names are near to those of other programs: POST, HOME. */
const LEAST_LENGTH = 8;

const found = new WeakMap<object, string[]>();

/** The result of {@link misspeltVariables} for a configuration. */
export const warningsOf = (config: object): string[] => found.get(config) ?? [];

/**
 * Variables that are no settings of this process, but nearly: each as a sentence. They are ignored, and a default counts in silence.
 *
 * @param settings a secret one may be set by `NAME_FILE`, too
 */
export function misspeltVariables(
  config: object,
  settings: readonly { names: readonly string[]; secret?: boolean }[],
  env: NodeJS.ProcessEnv,
): string[] {
  const known = settings.flatMap(({ names, secret }) => (secret ? names.flatMap((name) => [name, `${name}_FILE`]) : names));
  const sentences = Object.keys(env)
    .filter((name) => name.length >= LEAST_LENGTH && !known.includes(name))
    .flatMap((name) => {
      const near = known.find((one) => !env[one] && isNear(name, one));
      return near === undefined ? [] : [`${name} is not a setting of this process; did you mean ${near}?`];
    });
  found.set(config, sentences);
  return sentences;
}
