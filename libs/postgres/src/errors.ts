import { QueryFailedError } from 'typeorm';
import { tlsProblem } from '@app/runtime/settings/tls-files';

const REFUSED_LOGIN = /^28/;
const NO_DATABASE = '3D000';
/** At the beginning of a connection: the database has `ALLOW_CONNECTIONS false`. No statement of the services gets it. */
const CLOSED_DATABASE = '55000';

/** SQLSTATE of a write on a standby, or on a server whose default is read-only. Nothing was executed. */
export const READ_ONLY = '25006';

/** A server that accepts no writes, such as a standby. */
export class ReadOnlyServer extends Error {
  readonly code = READ_ONLY;
  constructor() {
    super('accepts no writes');
  }
}

/** The server behind the connection changes from statement to statement, or may. */
export class ConnectionPooler extends Error {
  readonly code = '08P01';
  constructor() {
    super(
      'is a connection pooler such as PgBouncer: name PostgreSQL itself. Settings of a connection, on which the time limit of each statement rests, do not hold behind a pooler',
    );
  }
}

/** None of several servers can be used. The message has their positions and SQLSTATEs, and no address. */
export class NoServer extends AggregateError {
  constructor(reasons: readonly string[], errors: unknown[]) {
    super(errors, reasons.join(', '));
  }
}

/**
 * SQLSTATEs for a lost server or connection, for a refused login (28), and for a database that was renamed, dropped or closed to connections.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const AWAY = /^(08|28|57P0[1-4]|53300|25006|3D000|55000)/;

/** SQLSTATEs that go away by themselves: deadlock, serialization failure, lock timeout, cancelled by timeout, out of resources. */
const TRANSIENT = /^(40001|40P01|55P03|57014|53)/;

const CANCELLED = '57014';

/** too_many_connections: of the server, of the database, or of the role. */
const NO_ROOM = '53300';

const NETWORK = /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;

/** Messages of node-postgres, without a code, when a connection ends or cannot be opened. They are fixed texts, and name nobody. */
const CONNECTION_LOST =
  /Connection terminated|SSL connection|timeout expired|not queryable|Client has encountered a connection error|Driver not Connected|is not established/i;

/** The error of the driver. TypeORM wraps it, but prepared statements bypass TypeORM. */
function driverError(error: unknown): { code?: unknown; constraint?: string } | null {
  return (error instanceof QueryFailedError ? error.driverError : error) as { code?: unknown; constraint?: string } | null;
}

/** SQLSTATE of a failed statement, or the code of another error, or an empty string. */
export function sqlState(error: unknown): string {
  const code = driverError(error)?.code;
  return typeof code === 'string' ? code : '';
}

/** Message of node-postgres when all connections of the pool are in use for too long. */
const POOL_EXHAUSTED = 'timeout exceeded when trying to connect';

/** Printable reason: of other errors of the driver only the code or name, because their messages may contain users and databases. */
export function reasonOf(error: unknown): string {
  if (error instanceof ReadOnlyServer || error instanceof ConnectionPooler || error instanceof NoServer) return error.message;
  if (isPoolExhausted(error)) return 'all connections of the pool are in use';
  const code = sqlState(error);
  if (REFUSED_LOGIN.test(code)) return `${code}: the server refuses the password or the certificate`;
  if (code === NO_DATABASE) return `${code}: the server has no such database`;
  if (code === CLOSED_DATABASE) return `${code}: the database takes no connections`;
  const { name, message } = error as Error;
  return tlsProblem(driverError(error)) ?? (code || (CONNECTION_LOST.test(message) ? message : name));
}

/** Whether waiting cannot help: a connection pooler, a database that does not exist, or a password or certificate that is refused. */
export function isRefused(error: unknown): boolean {
  if (error instanceof NoServer) return error.errors.every(isRefused);
  const code = sqlState(error);
  return error instanceof ConnectionPooler || REFUSED_LOGIN.test(code) || code === NO_DATABASE || tlsProblem(error) !== undefined;
}

/** The connection pooler among the reasons why no connection could be opened. */
export function connectionPooler(error: unknown): ConnectionPooler | undefined {
  return errorsOf(error).find((one) => one instanceof ConnectionPooler);
}

/** The errors of all servers, or the only one. */
export const errorsOf = (error: unknown): unknown[] => (error instanceof NoServer ? error.errors : [error]);

/** Name of the constraint that a statement violated. */
export function violatedConstraint(error: unknown): string | undefined {
  return driverError(error)?.constraint;
}

/** Whether the database cannot be reached or does not accept work. All other statements fail too until it is back. */
export function isDatabaseAway(error: unknown): boolean {
  const code = sqlState(error);
  if (AWAY.test(code) || NETWORK.test(code) || tlsProblem(driverError(error))) return true;
  if (error instanceof AggregateError) return error.errors.some(isDatabaseAway);
  return error instanceof Error && CONNECTION_LOST.test(error.message);
}

/** Whether the server works, and only takes no further connection. */
export function hasNoRoom(error: unknown): boolean {
  return sqlState(error) === NO_ROOM || (error instanceof NoServer && error.errors.some(hasNoRoom));
}

/** Whether the same statement may succeed when retried. It was rolled back or never sent. */
export const isTransient = (error: unknown): boolean => TRANSIENT.test(sqlState(error)) || isPoolExhausted(error);

const isPoolExhausted = (error: unknown): boolean => error instanceof Error && error.message === POOL_EXHAUSTED;

/**
 * Whether a statement was cancelled because it took too long, by itself or with its waits for locks. It may be the cause of the error that a
 * caller is told.
 */
export const isTimeout = (error: unknown): boolean =>
  sqlState(error) === CANCELLED || sqlState((error as Error | null | undefined)?.cause) === CANCELLED;

/** Whether it is a deadlock or a serialization failure: the statement was rolled back, and the competing one has committed. */
export const hasLostRace = (error: unknown): boolean => /^(40P01|40001)$/.test(sqlState(error));

/** Whether the statement can never succeed with these values. Others in the same batch may succeed. */
export const isRejectedByValue = (error: unknown): boolean => /^(22|23|54)/.test(sqlState(error));
