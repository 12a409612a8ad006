import { closeSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { report } from '../checkout/progress.mjs';

const LIMIT_BYTES = 10 * 1024 * 1024;
/** @type {Record<number, string>} */
const LEVELS = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'WARN', 50: 'ERROR', 60: 'FATAL' };
const WARN = 40;

/** Fields that the terminal shows in another way, or not at all, because every line has them. */
const COMMON = ['level', 'time', 'service', 'pid', 'context', 'msg', 'err'];

/** @typedef {{ level: number, msg?: string, context?: string, err?: { message?: string } }} LogEntry */

/**
 * @typedef {(line: string, entry: LogEntry | undefined) => string} Format
 *   of a line, which is a log entry or something else, for the terminal; empty to show nothing
 */

/** @type {Format} */
export const everything = (line, entry) => {
  if (!entry) return line;
  const fields = Object.entries(entry).filter(([name]) => !COMMON.includes(name));
  const text = `${LEVELS[entry.level] ?? entry.level} ${[entry.msg, entry.err?.message].filter(Boolean).join(': ')}`;
  return [text, fields.map(([name, value]) => `${name}=${short(value)}`).join(' ')].filter(Boolean).join('  ');
};

/** @param {unknown} value */
const short = (value) => (typeof value === 'string' && /^[\w.,:/@*~-]+$/.test(value) ? value : JSON.stringify(value));

/** @type {Format} */
const whatMatters = (line, entry) => (entry && entry.level < WARN ? '' : everything(line, entry));

/** Everything a service prints: all of it into a file of bounded size, what matters to the terminal. */
export class ServiceLog {
  #file;
  #name;
  #format;
  #handle;
  #size = 0;
  #rest = '';
  #isKept = true;

  /**
   * @param {string} name of the service
   * @param {string} file
   * @param {Format} [format]
   */
  constructor(name, file, format = whatMatters) {
    this.#name = name;
    this.#file = file;
    this.#format = format;
    mkdirSync(dirname(file), { recursive: true });
    this.#handle = openSync(file, 'w', 0o600);
  }

  /** @param {string} text a piece of output, cut anywhere */
  write(text) {
    this.#keep(text);
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#show(line);
  }

  /** @param {string} text */
  #keep(text) {
    try {
      this.#size += writeSync(this.#handle, text);
      if (this.#size > LIMIT_BYTES) this.#turnOver();
      this.#isKept = true;
    } catch (error) {
      // On a full disk the system goes on, and what matters is on the terminal.
      if (this.#isKept) report(`${this.#file} lacks lines: ${error.message}`);
      this.#isKept = false;
    }
  }

  #turnOver() {
    renameSync(this.#file, `${this.#file}.1`);
    const next = openSync(this.#file, 'w', 0o600);
    // Not before: without a next one the lines go on here.
    closeSync(this.#handle);
    this.#handle = next;
    this.#size = 0;
  }

  /** @param {string} line */
  #show(line) {
    const text = this.#format(line, parse(line)).trimEnd();
    if (text) process.stdout.write(`[${this.#name}] ${text}\n`);
  }
}

/** @param {string} line @returns {LogEntry | undefined} */
function parse(line) {
  try {
    const entry = JSON.parse(line);
    return typeof entry?.level === 'number' ? entry : undefined;
  } catch {
    return undefined; // not a log line: a stack from before the logger was there
  }
}
