import { QueryFailedError } from 'typeorm';

/** SQLSTATE classes that say that the server, or the way to it, is gone. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const AWAY = /^(08|57P0[123]|53300|25006)/;

/** Conflicts and limits that go away by themselves: deadlock, serialization, lock timeout, cancelled by timeout, out of resources. */
const TRANSIENT = /^(40001|40P01|55P03|57014|53)/;

const NETWORK = /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;

/** What node-postgres says without a code when a connection ends or cannot be had. */
const CONNECTION_LOST =
  /Connection terminated|timeout expired|not queryable|Client has encountered a connection error|Driver not Connected|is not established/i;

/** TypeORM wraps what the driver throws; prepared statements go past it. */
function driverError(error: unknown): { code?: unknown; constraint?: string } | null {
  return (error instanceof QueryFailedError ? error.driverError : error) as { code?: unknown; constraint?: string } | null;
}

function codeOf(error: unknown): string {
  const code = driverError(error)?.code;
  return typeof code === 'string' ? code : '';
}

/** SQLSTATE of a failed statement, or an empty string. */
export const sqlState = codeOf;

/** Name of the constraint that a statement violated. */
export function violatedConstraint(error: unknown): string | undefined {
  return driverError(error)?.constraint;
}

/** The database cannot be reached or does not accept work: nothing else will succeed either until it is back. */
export function isDatabaseAway(error: unknown): boolean {
  const code = codeOf(error);
  if (AWAY.test(code) || NETWORK.test(code)) return true;
  if (error instanceof AggregateError) return error.errors.some(isDatabaseAway);
  return error instanceof Error && CONNECTION_LOST.test(error.message);
}

/** What node-postgres says when every connection of the pool is in use for too long. */
const POOL_EXHAUSTED = 'timeout exceeded when trying to connect';

/** The same statement may succeed when tried again, and was certainly rolled back or never sent. */
export const isTransient = (error: unknown): boolean =>
  TRANSIENT.test(codeOf(error)) || (error instanceof Error && error.message === POOL_EXHAUSTED);

/** Deadlock and serialization failure: the statement was rolled back, and its rival is done. */
export const hasLostRace = (error: unknown): boolean => /^(40P01|40001)$/.test(codeOf(error));

/** The statement can never succeed with these values: neighbours in the same batch may. */
export const isRejectedByValue = (error: unknown): boolean => /^(22|23|54)/.test(codeOf(error));
