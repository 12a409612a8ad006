import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MAX_BODY_BYTES } from '@app/contracts/json';
import { bodyTooLarge, refusal } from '../server/http-error';

const JSON_MEDIA_TYPE = /^application\/json$/i;
const UTF8_CHARSET = /^charset="?utf-?8"?$/i;

/** Checks the headers of a body before it is read. @throws HttpError 415 or 413 */
export function refuseContent(headers: IncomingHttpHeaders): void {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '').split(';').map((part) => part.trim());
  if (!JSON_MEDIA_TYPE.test(mediaType)) throw refusal(415, 'The content type must be application/json.');
  const charset = parameters.find((parameter) => /^charset=/i.test(parameter));
  if (charset && !UTF8_CHARSET.test(charset)) throw refusal(415, 'The charset must be utf-8.');

  const encoding = headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') throw refusal(415, 'The content encoding must be identity.');

  if (Number(headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
}

/**
 * Adds one parser for every content type, because {@link refuseContent} has checked the type already. It only collects the bytes: a parsed body
 * takes up to 30 times as much memory, so the controller parses it when the call has its turn.
 *
 * @param whenTurn resolves when it is the turn of the body
 */
export function acceptJsonBodies(
  fastify: FastifyInstance,
  whenTurn: (request: FastifyRequest, bytes: number) => Promise<void> | undefined,
): void {
  fastify.removeAllContentTypeParsers();
  const options = { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES } as const;
  fastify.addContentTypeParser('*', options, async (request: FastifyRequest, body: Buffer) => {
    const turn = whenTurn(request, body.length);
    if (turn) await turn;
    return body;
  });
}
