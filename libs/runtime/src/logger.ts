import type { LoggerService } from '@nestjs/common';
import { pino, type Logger } from 'pino';
import { traceFields } from '@app/tracing/tracing';
import type { LogLevel } from './settings/log-levels';
import { linesDropped, logBufferLimit } from './metrics';

/** Most buffered bytes while stdout is not read. */
const MAX_WAITING = 16 * 1024 * 1024;

/** Only the properties that name an error. Its other properties may be values: those of a failed statement are its parameters. */
function shownOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack, code } = pino.stdSerializers.err(error);
  return { type, message, stack, ...(code !== undefined && { code: code as unknown }) };
}

/** JSON allows these characters unescaped, but many line readers (readline of Node 24, Python's splitlines) end a line at them. */
const ENDS_OF_LINE = /[\u0085\u2028\u2029]/g;
const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Lets the service outlive its stdout: neither a full disk behind it nor the end of its reader may stop it. */
function outliveStdout(stdout: ReturnType<typeof pino.destination>): void {
  // A line that a full disk does not take waits, and is written with a later one.
  stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    // pino would drop all further lines without counting them.
    if (code === 'EPIPE') stdout.write = () => (linesDropped.inc(), false);
  });
  // pino calls it for a fatal line and at the exit. It would wait for ever, and the thread with it.
  stdout.flushSync = () => undefined;
}

/**
 * JSON lines on stdout, one object per line, with the service's name. Never log bodies, tokens or URLs with credentials. Writes are asynchronous,
 * because a reader that stops reading must not block the service.
 */
export function createLogger(service: string, level: LogLevel): Logger {
  // Not 0, because then flush() would not wait.
  const stdout = pino.destination({ sync: false, minLength: 1, maxLength: MAX_WAITING });
  stdout.on('drop', () => linesDropped.inc());
  outliveStdout(stdout);
  logBufferLimit.set(MAX_WAITING);
  return pino(
    {
      level,
      base: { service, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: shownOf },
      hooks: { streamWrite: (line) => line.replace(ENDS_OF_LINE, escaped) },
    },
    stdout,
  );
}

/** Longest wait for a reader of stdout at the end of the process, in milliseconds. */
const LAST_LINES_MS = 2000;

/** Ends the process after its last lines are written, within 2 s: by SIGKILL when stdout is not read. */
export function exitAfterLogging(logger: Logger, code: number): void {
  logger.flush(() => process.exit(code));
  // An exit would wait for the thread that writes.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_LINES_MS);
}

/** Passes everything that is logged through Nest's Logger to pino. The last string parameter is Nest's context. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log = (message: unknown, ...parameters: unknown[]) => this.write('info', message, parameters);
  fatal = (message: unknown, ...parameters: unknown[]) => this.write('fatal', message, parameters);
  error = (message: unknown, ...parameters: unknown[]) => this.write('error', message, parameters);
  warn = (message: unknown, ...parameters: unknown[]) => this.write('warn', message, parameters);
  debug = (message: unknown, ...parameters: unknown[]) => this.write('debug', message, parameters);
  verbose = (message: unknown, ...parameters: unknown[]) => this.write('trace', message, parameters);

  private write(level: LogLevel, message: unknown, parameters: unknown[]): void {
    if (!this.logger.isLevelEnabled(level)) return;
    const context = typeof parameters.at(-1) === 'string' ? (parameters.pop() as string) : undefined;
    const err = parameters.find((parameter) => parameter instanceof Error);
    // Nest passes a stack as a string before the context.
    const stack = parameters.find((parameter): parameter is string => typeof parameter === 'string');
    const fields = { ...(context && { context }), ...(err && { err }), ...(stack && { stack }), ...traceFields() };
    if (message instanceof Error) this.logger[level]({ ...fields, err: message });
    else if (typeof message === 'object' && message !== null) this.logger[level]({ ...fields, ...message });
    else this.logger[level](fields, String(message));
  }
}
