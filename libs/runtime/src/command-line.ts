import { parseArgs } from 'node:util';
import { isNear } from './settings/near-name';

/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {}

type Options = Record<string, 'value' | 'switch'>;

/** The options that were given. */
export type ValuesOf<O extends Options> = { [K in keyof O]?: O[K] extends 'value' ? string : boolean };

/** The options and commands of a tool. `--help` goes without saying. */
export interface CommandLine<C extends string, O extends Options> {
  options: O;
  /** Each command, and the options that it has. */
  commands: Record<C, readonly (keyof O & string)[]>;
}

/** A command line that was understood. */
export interface Understood<C extends string, O extends Options> {
  command: C;
  /** After the command, without options. */
  words: string[];
  values: ValuesOf<O>;
}

/**
 * @returns undefined when help was asked for
 * @throws UsageError
 */
export function readArguments<C extends string, O extends Options>(
  { options, commands }: CommandLine<C, O>,
  args: string[],
): Understood<C, O> | undefined {
  if (asksForHelp(args)) return undefined;
  const { positionals, tokens } = parse(options, args);
  const [word, ...words] = positionals;
  const names = Object.keys(commands) as C[];
  if (word === undefined) throw new UsageError(`A command is missing; there are: ${names.join(', ')}.`);
  const command = names.find((name) => name === word);
  if (command === undefined) throw new UsageError(`There is no command ${word}; ${advice(word, names)}`);
  return { command, words, values: valuesIn(tokens, command, options, commands[command]) };
}

/**
 * The command line of a tool without commands.
 *
 * @returns undefined when help was asked for
 * @throws UsageError
 */
export function readOptions<O extends Options>(
  tool: string,
  options: O,
  args: string[],
): Omit<Understood<never, O>, 'command'> | undefined {
  if (asksForHelp(args)) return undefined;
  const { positionals, tokens } = parse(options, args);
  return { words: positionals, values: valuesIn(tokens, tool, options, Object.keys(options)) };
}

const asksForHelp = (args: string[]): boolean => {
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
  return own.some((word) => word === '--help' || word === '-h');
};

function parse(options: Options, args: string[]) {
  const types = Object.entries(options).map(
    ([name, kind]) => [name, { type: kind === 'value' ? 'string' : 'boolean' } as const] as const,
  );
  // Not strict: its own messages explain odd values at length and name no option that there is.
  return parseArgs({ args, strict: false, tokens: true, options: Object.fromEntries(types) });
}

function valuesIn<O extends Options>(
  tokens: ReturnType<typeof parse>['tokens'],
  subject: string,
  options: O,
  allowed: readonly string[],
): ValuesOf<O> {
  const values: Record<string, string | boolean> = {};
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    if (!rawName.startsWith('--') || !allowed.includes(name)) {
      const known = [...allowed, 'help'].map((option) => `--${option}`);
      throw new UsageError(`${subject} has no option ${rawName}; ${advice(rawName, known)}`);
    }
    const takesValue = options[name] === 'value';
    if (takesValue && (value === undefined || (!inlineValue && value.startsWith('-'))))
      throw new UsageError(`${rawName} needs a value.`);
    if (!takesValue && value !== undefined) throw new UsageError(`${rawName} takes no value.`);
    if (takesValue && Object.hasOwn(values, name)) throw new UsageError(`${rawName} is given twice.`);
    values[name] = value ?? true;
  }
  return values as ValuesOf<O>;
}

/** For an error about an unknown name: the name that was meant, or else all. */
export function advice(given: string, known: readonly string[]): string {
  const near = known.find((name) => isNear(given, name));
  return near === undefined ? `there are: ${known.join(', ')}.` : `did you mean ${near}?`;
}

/**
 * A whole number from 1 to `max`.
 * @throws UsageError
 */
export function wholeNumber(option: string, text: string, max: number): number {
  const number = Number(text);
  if (/^[1-9]\d*$/.test(text) && number <= max) return number;
  throw new UsageError(`${option} must be a whole number from 1 to ${max}.`);
}
