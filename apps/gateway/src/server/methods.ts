import type { FastifyInstance } from 'fastify';
import type { ApiError } from '@app/contracts/error';
import { HttpError, nothingHere } from './http-error';

const ANSWERED_METHODS = ['GET', 'HEAD', 'POST'];

/** The error for a path without a handler for this method: 405 when another method has one, else 404. */
export function notServed(fastify: FastifyInstance, url = ''): ApiError {
  const allowed = ANSWERED_METHODS.filter((method) => fastify.findRoute({ method, url }) !== null);
  return allowed.length === 0 ? nothingHere() : onlyThese(allowed);
}

/** The error for CONNECT. Its target is usually a host and not a path: then it is 405. */
export const connectNotServed = (fastify: FastifyInstance, target = ''): ApiError =>
  target.startsWith('/') ? notServed(fastify, target) : onlyThese(ANSWERED_METHODS);

const onlyThese = (allowed: string[]) =>
  new HttpError(405, 'INVALID_ARGUMENT', `The method must be ${listOf(allowed)}.`, { allow: allowed.join(', ') });

const listOf = (words: string[]) => words.join(', ').replace(/, (\w+)$/, ' or $1');
