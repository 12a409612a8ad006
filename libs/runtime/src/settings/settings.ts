import { isIP } from 'node:net';
import { milliseconds } from './duration';
import { misspeltVariables } from './misspelt-variables';
import { readSmallFile } from './small-file';

/** One environment variable: its reader and its documentation. */
export interface Setting<T> {
  /** Names in order of precedence: the first one that is set counts. */
  readonly names: readonly [string, ...string[]];
  readonly description: string;
  /** Default value in the documentation. */
  readonly fallback: string;
  /** Whether the value contains a password. Then `NAME_FILE` may name a file with the value instead. */
  readonly secret?: boolean;
  /**
   * @param env for rules about several variables
   * @returns the value, or the problem as the rest of a sentence that starts with the variable's name
   */
  read(raw: string | undefined, env: NodeJS.ProcessEnv): Outcome<T>;
}

export type Outcome<T> = { value: T } | { problem: string };
type SettingsOf = Record<string, Setting<unknown>>;
type Values<S extends SettingsOf> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/** All problems of the environment. It names variables and never shows values, which may contain passwords. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: string[]) {
    super(`The configuration is invalid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
  }
}

/**
 * Creates the base class of a service's configuration from its settings. So the class is both the type and the injection token.
 *
 * @example class UsersConfig extends Settings({ port: port('PORT', 3000, 'Port of the API.') }) {}
 */
export function Settings<S extends SettingsOf>(settings: S) {
  class Base {
    static readonly settings: SettingsOf = settings;
    /** @param env other variables than those of the process @throws ConfigError naming every problem at once */
    constructor(env: NodeJS.ProcessEnv = process.env) {
      const problems: string[] = [];
      for (const [key, setting] of Object.entries(settings)) {
        const { name, outcome } = readSetting(setting, env);
        if ('problem' in outcome) problems.push(`${name} ${outcome.problem}`);
        else Object.assign(this, { [key]: outcome.value });
      }
      const misspelt = misspeltVariables(this, Object.values(settings), env);
      if (problems.length > 0) throw new ConfigError(problems.concat(misspelt));
    }
  }
  return Base as { readonly settings: SettingsOf; new (env?: NodeJS.ProcessEnv): Values<S> };
}

const MAX_SECRET_BYTES = 64 * 1024;
const MAX_PEM_BYTES = 1024 * 1024;

/**
 * Reads one setting from the first of its names that is set. `NAME_FILE` sets a secret, too. An empty variable counts as unset, because
 * compose files and shells cannot express the difference. A line break at the end does not count: editors and `echo` add one.
 *
 * @returns with the variable that counts, for problems
 */
function readSetting<T>(setting: Setting<T>, env: NodeJS.ProcessEnv): { name: string; outcome: Outcome<T> } {
  const cut = (text = '') => text.replace(/\r?\n$/, '');
  const fileOf = (name: string) => (setting.secret && env[`${name}_FILE`]) || undefined;
  const name = setting.names.find((candidate) => cut(env[candidate]) || fileOf(candidate)) ?? setting.names[0];
  const [value, file] = [cut(env[name]), fileOf(name)];
  if (file === undefined) return { name, outcome: setting.read(value || undefined, env) };
  if (value) return { name, outcome: { problem: `and ${name}_FILE are both set: only one of them may be` } };
  const content = readSmallFile(file, MAX_SECRET_BYTES);
  if ('problem' in content) return { name: `${name}_FILE`, outcome: content };
  return { name: `${name} in the file of ${name}_FILE`, outcome: setting.read(cut(content.value), env) };
}

type Names = string | [string, ...string[]];

const setting = <T>(names: Names, description: string, fallback: string, read: Setting<T>['read']): Setting<T> => ({
  names: typeof names === 'string' ? [names] : names,
  description,
  fallback,
  read,
});

/** A whole number. */
export function integer(
  names: Names,
  fallback: number,
  { min, max }: { min: number; max: number },
  description: string,
): Setting<number> {
  return setting<number>(names, description, String(fallback), (raw) => {
    if (raw === undefined) return { value: fallback };
    const value = Number(raw);
    const valid = /^\d+$/.test(raw) && value >= min && value <= max;
    return valid ? { value } : { problem: `must be a whole number from ${min} to ${max}` };
  });
}

/** A share: a number from 0 to 1. */
export function share(names: Names, fallback: number, description: string): Setting<number> {
  return setting<number>(names, description, String(fallback), (raw = String(fallback)) => {
    const valid = /^(0|1|0?\.\d+|[01]\.\d+)$/.test(raw) && Number(raw) <= 1;
    return valid ? { value: Number(raw) } : { problem: 'must be a number from 0 to 1' };
  });
}

/** A duration such as `500ms`, `30s`, `10m` or `1h`, with its unit. The value is in milliseconds. */
export function duration(names: Names, fallback: string, { max }: { max: string }, description: string): Setting<number> {
  const parse = (raw: string) => milliseconds(raw, ['ms', 's', 'm', 'h']);
  return setting<number>(names, description, fallback, (raw) => {
    const value = parse(raw ?? fallback);
    return value <= parse(max) ? { value } : { problem: `must be a duration with its unit, such as 30s, at most ${max}` };
  });
}

/** A TCP port. 0 lets the system choose a free port. */
export const port = (names: Names, fallback: number, description: string) =>
  integer(names, fallback, { min: 0, max: 65_535 }, description);

/** Address to listen on: an IP address or `localhost`. Without brackets, and without a zone (`%eth0`), which no URL can contain. */
export function address(names: Names, fallback: string, description: string): Setting<string> {
  return setting<string>(names, description, fallback, (raw = fallback) =>
    (isIP(raw) > 0 && !raw.includes('%')) || raw === 'localhost'
      ? { value: raw }
      : { problem: 'must be an IP address without brackets and zone, or localhost' },
  );
}

/**
 * Checks a URL. It throws an Error whose message is the rest of a sentence that starts with the variable's name, and never contains the URL.
 */
type CheckUrl = (raw: string) => unknown;

/** A required URL of one of the protocols, for example `amqp:`. It is a secret, because it contains a password. @param check default: a URL of one host */
export function url(
  names: Names,
  protocols: [string, ...string[]],
  description: string,
  check = oneHost(protocols),
): Setting<string> {
  const read = (raw?: string) =>
    raw === undefined ? { problem: `is required: a URL that starts with ${startsOf(protocols)}` } : readUrl(raw, check);
  return { ...setting<string>(names, description, 'required', read), secret: true };
}

/** An optional URL; undefined when unset. It is a secret, too. @param check default: a URL of one host */
export function optionalUrl(
  names: Names,
  protocols: [string, ...string[]],
  description: string,
  check = oneHost(protocols),
): Setting<string | undefined> {
  const read = (raw?: string) => (raw === undefined ? { value: undefined } : readUrl(raw, check));
  return { ...setting<string | undefined>(names, description, 'unset', read), secret: true };
}

const startsOf = (protocols: string[]) => protocols.map((protocol) => `${protocol}//`).join(' or ');

const oneHost =
  (protocols: string[]): CheckUrl =>
  (raw) => {
    const valid = URL.canParse(raw) && protocols.includes(new URL(raw).protocol) && new URL(raw).hostname !== '';
    if (!valid) throw new Error(`must be a URL that starts with ${startsOf(protocols)}`);
  };

function readUrl(raw: string, check: CheckUrl): Outcome<string> {
  try {
    check(raw);
    return { value: raw };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** One of several words. */
export function choice<T extends string>(names: Names, fallback: T, values: readonly T[], description: string): Setting<T> {
  return setting<T>(names, description, fallback, (raw) => {
    const value = values.find((candidate) => candidate === (raw ?? fallback));
    return value === undefined ? { problem: `must be one of: ${values.join(', ')}` } : { value };
  });
}

/** A comma-separated list of allowed words. */
export function choices<T extends string>(names: Names, values: readonly T[], description: string): Setting<T[]> {
  return setting<T[]>(names, description, values.join(','), (raw) => {
    const words = (raw ?? values.join(',')).split(',').map((word) => word.trim());
    const chosen = values.filter((candidate) => words.includes(candidate));
    return chosen.length === 0 || chosen.length !== new Set(words).size
      ? { problem: `must be a comma-separated list of: ${values.join(', ')}` }
      : { value: chosen };
  });
}

/** A comma-separated list of names. */
export function list(names: Names, fallback: readonly string[], description: string): Setting<string[]> {
  return setting<string[]>(names, description, fallback.join(','), (raw) => {
    const words = (raw?.split(',') ?? [...fallback]).map((word) => word.trim());
    return words.every(Boolean) ? { value: words } : { problem: 'must be names separated by commas' };
  });
}

/** An optional string, such as the path of a file. */
export function text(names: Names, description: string): Setting<string | undefined> {
  return setting<string | undefined>(names, description, 'unset', (raw) => ({ value: raw }));
}

/** An optional string that may contain a password. */
export const secretText = (names: Names, description: string): Setting<string | undefined> => ({
  ...text(names, description),
  secret: true,
});

/** A required secret of at least `bytes` bytes, so that it cannot be guessed. */
export function longSecret(names: Names, bytes: number, description: string): Setting<string> {
  const read = (raw = '') =>
    Buffer.byteLength(raw) >= bytes ? { value: raw } : { problem: `is required: a random text of at least ${bytes} bytes` };
  return { ...setting<string>(names, description, 'required', read), secret: true };
}

/** A required list of `host:port`, separated by commas, with at most `most` of them. */
export function hostPorts(names: Names, most: number, description: string): Setting<string[]> {
  return setting<string[]>(names, description, 'required', (raw = '') => {
    const words = raw.split(',').map((word) => word.trim());
    const valid =
      words.length <= most &&
      words.every((word) => /^(\[[\da-f:]+\]|[\w.-]+):[1-9]\d*$/i.test(word) && URL.canParse(`http://${word}`));
    return valid ? { value: words } : { problem: `is required: host:port, several separated by commas, at most ${most}` };
  });
}

/** An optional PEM file that can be read at start; `needs` is a variable that must be set with it. The value is its path. */
export function pemFile(name: string, description: string, needs?: string): Setting<string | undefined> {
  return setting<string | undefined>(name, description, 'unset', (raw, env) => {
    if (raw === undefined) return { value: undefined };
    if (needs && !env[needs]) return { problem: `needs ${needs}` };
    const content = readSmallFile(raw, MAX_PEM_BYTES);
    return 'problem' in content ? content : { value: raw };
  });
}

/** true or false. */
export function flag(names: Names, fallback: boolean, description: string): Setting<boolean> {
  return setting<boolean>(names, description, String(fallback), (raw) => {
    if (raw === undefined) return { value: fallback };
    return raw === 'true' || raw === 'false' ? { value: raw === 'true' } : { problem: 'must be true or false' };
  });
}
