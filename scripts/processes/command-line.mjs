import { parseArgs } from 'node:util';

/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {}

/**
 * @typedef {object} Option
 * @property {string} [value] the name of its value in the help; a switch has none
 * @property {string} help
 */

/**
 * @typedef {object} Words the arguments that are no options
 * @property {string} name in the help
 * @property {string} help
 * @property {readonly string[]} [known] absent: any
 * @property {number} [least] none by itself
 * @property {number} [most] any number by itself
 */

/**
 * @template {Record<string, Option>} [O={}]
 * @typedef {object} CommandLine
 * @property {string} command as a reader types it, up to the arguments
 * @property {string} about
 * @property {Words} [words] absent: there are none
 * @property {string} [passedOn] the program whose arguments these are: none is looked at but a help option in front
 * @property {O} [options]
 * @property {string[]} [notes]
 * @property {Record<string, string>} examples arguments, and what they do
 */

/**
 * @template {Record<string, Option>} O
 * @typedef {{ words: string[], values: { [K in keyof O]?: O[K] extends { value: string } ? string : boolean } }} Arguments
 */

const HELP = { help: { help: 'this text' } };

/**
 * Reads the arguments of this process. Help and mistakes end it, with 0 and 2, so a script asks before it starts anything.
 * @template {Record<string, Option>} O
 * @template [R=void]
 * @param {CommandLine<O>} table
 * @param {(read: Arguments<O>) => R} [interpret] may throw a UsageError; absent: there are no arguments
 * @returns {R}
 */
export function commandLine(table, interpret = () => /** @type {R} */ (undefined)) {
  const args = process.argv.slice(2);
  try {
    if (asksForHelp(table, args)) {
      process.stdout.write(helpOf(table));
      process.exit(0);
    }
    return interpret(argumentsOf(table, args));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    aside('error', `${error.message} See ${table.command} --help`, Boolean(table.options?.json) && args.includes('--json'));
    process.exit(2);
  }
}

/**
 * A remark of a tool beside its result, on stderr; as libs/runtime/src/tool-output.ts does.
 * @param {'note' | 'error'} kind
 * @param {string} text
 * @param {boolean} json
 */
export const aside = (kind, text, json) => console.error(json ? JSON.stringify({ [kind]: text }) : text);

/** @param {CommandLine<any>} table @param {string[]} args */
function asksForHelp({ passedOn }, args) {
  const end = passedOn ? 1 : args.includes('--') ? args.indexOf('--') : args.length;
  return args.slice(0, end).some((word) => word === '--help' || word === '-h');
}

/**
 * @template {Record<string, Option>} O
 * @param {CommandLine<O>} table
 * @param {string[]} args
 * @returns {Arguments<O>}
 */
function argumentsOf({ words, passedOn, options }, args) {
  if (passedOn) return { words: args, values: {} };
  const known = Object.entries(options ?? {});
  // Not strict: its own messages explain odd values at length and name no option that there is.
  const { positionals, tokens } = parseArgs({
    args,
    strict: false,
    tokens: true,
    options: Object.fromEntries(known.map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' }])),
  });
  /** @type {Record<string, string | boolean>} */
  const values = {};
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const [, option] = known.find(([name]) => name === token.name && token.rawName.startsWith('--')) ?? [];
    if (!option) throw unknown('option', token.rawName, [...known.map(([name]) => `--${name}`), '--help']);
    if (option.value && (!token.value || (!token.inlineValue && token.value.startsWith('-'))))
      throw new UsageError(`${token.rawName} needs a value: ${token.rawName} ${option.value}.`);
    if (!option.value && token.value !== undefined) throw new UsageError(`${token.rawName} takes no value.`);
    if (option.value && Object.hasOwn(values, token.name)) throw new UsageError(`${token.rawName} is given twice.`);
    values[token.name] = token.value ?? true;
  }
  checkWords(words, positionals);
  return { words: positionals, values: /** @type {Arguments<O>['values']} */ (values) };
}

/** @param {Words | undefined} words @param {string[]} given */
function checkWords(words, given) {
  const { name, known, least = 0, most = Infinity } = words ?? { name: '', most: 0 };
  const stray = known && given.find((word) => !known.includes(word));
  if (stray !== undefined) throw unknown(name, stray, known ?? []);
  if (given.length < least) throw new UsageError(`${name} is missing${known ? `; there are: ${known.join(', ')}` : ''}.`);
  if (given.length > most) throw new UsageError(`"${given[most]}" is one word too many.`);
}

/**
 * The error for an unknown name: names the one that is meant, or else all.
 * @param {string} kind
 * @param {string} given
 * @param {readonly string[]} known
 */
export function unknown(kind, given, known) {
  const near = known.find((name) => isNear(given, name));
  const quoted = (/** @type {string} */ name) => (/^[\w.-]+$/.test(name) ? name : `"${name}"`);
  const advice = near ? `did you mean ${quoted(near)}?` : `there are: ${known.map(quoted).join(', ')}.`;
  return new UsageError(`There is no ${kind} ${quoted(given)}; ${advice}`);
}

/** Whether one may be the other, misspelt. @param {string} given @param {string} name */
function isNear(given, name) {
  const anagram = [...given].sort().join('') === [...name].sort().join('');
  return anagram || (distance(given, name) <= 2 && distance(given, name) < given.replace(/^-+/, '').length / 2);
}

/** How many letters must be put in, left out or changed. @param {string} a @param {string} b @returns {number} */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries())
      next.push(Math.min(row[j + 1] + 1, next[j] + 1, row[j] + (letter === other ? 0 : 1)));
    row = next;
  }
  return row[b.length];
}

const UNITS = { s: 1, m: 60, h: 3600 };

/** @param {string} option @param {string} text @returns {number} */
export function secondsOf(option, text) {
  const [, amount, unit] = /^(\d+)([smh])$/.exec(text) ?? [];
  if (!amount) throw new UsageError(`${option} must be a number with s, m or h, such as 90s.`);
  return Number(amount) * UNITS[/** @type {keyof typeof UNITS} */ (unit)];
}

/** @param {string} option @param {string} text @param {number} most @returns {number} from 1 on */
export function wholeNumber(option, text, most) {
  const number = Number(text);
  if (/^[1-9]\d*$/.test(text) && number <= most) return number;
  throw new UsageError(`${option} must be a whole number from 1 to ${most}.`);
}

/** @param {CommandLine<any>} table */
function helpOf({ command, about, words, passedOn, options = {}, notes = [], examples }) {
  const known = Object.entries({ ...options, ...(passedOn ? {} : HELP) });
  const usage = [
    ...(passedOn ? [`[ARGUMENT OF ${passedOn.toUpperCase()} ...]`] : []),
    ...(words ? [(words.least ?? 0) > 0 ? words.name : `[${words.name}${words.most === 1 ? '' : ' ...'}]`] : []),
    ...Object.entries(options).map(([name, { value }]) => `[--${name}${value ? ` ${value}` : ''}]`),
  ];
  const rows = [
    ...(words ? [[words.name, words.help], ...(words.known ? [['', words.known.join(', ')]] : [])] : []),
    ...known.map(([name, { value, help }]) => [`--${name}${value ? ` ${value}` : ''}`, help]),
  ];
  const paragraphs = [
    about,
    `Usage: ${[command, ...usage].join(' ')}`,
    table(rows),
    ...notes,
    'Exit codes: 0 done, 1 failed, 2 wrong usage.',
    `Examples:\n${table(Object.entries(examples).map(([args, meaning]) => [`${command} ${args}`.replace(/(?: --)? *$/, ''), meaning]))}`,
  ];
  return `${paragraphs.filter(Boolean).join('\n\n')}\n`;
}

/** @param {string[][]} rows */
function table(rows) {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}`).join('\n');
}
