import { tlsProblem } from '@app/runtime/settings/tls-files';

/** Time between two log lines about attempts that fail one after the other. */
const LOG_EVERY_MS = 60_000;

/** Failed attempts to open a connection or a channel since the last success. It may take hours, and each attempt has the same to say. */
export class Failures {
  /** Reason of the latest failure; undefined after a success. */
  latest?: string;
  private unlogged = 0;
  private loggedAt = -Infinity;

  /**
   * @param now in milliseconds
   * @returns how many attempts a log line has to count: the first at once, the others at most once a minute; 0 for no line
   */
  add(reason: string, now = performance.now()): number {
    this.latest = reason;
    this.unlogged++;
    if (now - this.loggedAt < LOG_EVERY_MS) return 0;
    const attempts = this.unlogged;
    this.unlogged = 0;
    this.loggedAt = now;
    return attempts;
  }

  /** To be called after a success. */
  clear(): void {
    this.latest = undefined;
    this.unlogged = 0;
    this.loggedAt = -Infinity;
  }
}

/** amqplib does not pass on the text with which the broker ends a connection between the login and the virtual host. */
const REFUSED_AFTER_LOGIN = 'Expected ConnectionOpenOk; got <ConnectionClose';
const REFUSED_VHOST =
  'the broker refuses the virtual host: it does not exist or is down, the account has no rights there, or a limit of connections is reached';

/** Why a connection failed or ended, in one line without secrets. */
export function reasonOf(error: unknown): string {
  const { message, code } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  if (message?.startsWith(REFUSED_AFTER_LOGIN)) return REFUSED_VHOST;
  return tlsProblem(error) || message || code || 'no reason given';
}
