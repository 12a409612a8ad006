import { UsageError } from './command-line';

/** The answer of a command: lines for people, data for scripts (`--json`). */
export interface Output {
  lines: string[];
  data: Record<string, unknown>;
}

/**
 * The output of a tool for operators. Without `--json` these are lines for people. With it stdout has the result as one JSON document, and each line of
 * stderr is a JSON object: `{ "note": … }` or `{ "error": … }`.
 */
export class ToolOutput {
  /** @param args of the program: a wrong command line is answered in the wanted form, too */
  constructor(args: readonly string[] = process.argv.slice(2)) {
    this.json = args.includes('--json');
    // Set-up has several of them in one process.
    if (process.stdout.listenerCount('error') === 0)
      process.stdout.on('error', (error: NodeJS.ErrnoException) => this.lost(error));
  }

  readonly json: boolean;

  /** The result, once. */
  result({ data, lines }: Output): void {
    this.print(this.json ? JSON.stringify(data) : lines.join('\n'));
  }

  /** A line about the work while it goes on. */
  progress(line: string): void {
    if (this.json) this.note(line);
    else this.print(line);
  }

  /** A remark for the operator beside the result. */
  note(text: string): void {
    this.aside('note', text);
  }

  /** Says why the tool ended, and sets its exit code: 2 for a wrong command line, else 1. */
  failure(tool: string, error: unknown, reasonOf: (error: unknown) => string): void {
    const usage = error instanceof UsageError;
    this.aside('error', usage ? `${error.message} See npm run ${tool} -- --help` : reasonOf(error));
    process.exitCode = usage ? 2 : 1;
  }

  /** The console ignores it. A reader that has gone has had enough. */
  private lost({ code }: NodeJS.ErrnoException): void {
    if (code === 'EPIPE') return;
    this.aside('error', `The output cannot be written: ${code}.`);
    // The work goes on to its end, and says then how it went.
    process.once('exit', () => (process.exitCode ||= 1));
  }

  private aside(kind: 'note' | 'error', text: string): void {
    console.error(this.json ? JSON.stringify({ [kind]: text }) : text);
  }

  /** The console bears a pipe whose reader has gone, as behind `| head`. A write to stdout would end the tool in the middle of its work. */
  private print(text: string): void {
    console.log(text);
  }
}
