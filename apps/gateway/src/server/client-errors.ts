import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Connections } from './connections';
import { errorEnvelope, JSON_TYPE } from './envelope';
import { httpAnswerOf, refusal, WRONG_VERSION, type HttpAnswer, type HttpError } from './http-error';
import { connectNotServed } from './methods';
import { countError } from './metrics';
import { Pace } from './pace';
import { requestIdOf } from './request-id';
import { neverReadOn } from './stop-reading';
import type { StrangerLines } from './stranger-lines';

interface ClientError extends Error {
  code?: string;
}

const TOO_SLOW = 'ERR_HTTP_REQUEST_TIMEOUT';

/** The answer to bytes that Node's HTTP parser could not read as a request. */
function refusalOf({ code }: ClientError): HttpError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return refusal(431, 'The headers are too large.');
    case TOO_SLOW:
      return refusal(408, 'The request took too long to arrive.');
    // The second is for the first line of HTTP/2.
    case 'HPE_INVALID_VERSION':
    case 'HPE_PAUSED_H2_UPGRADE':
      return refusal(400, WRONG_VERSION);
    default:
      return refusal(400, 'The request is not valid HTTP.');
  }
}

/** Most requests that came too slowly and are answered in one iteration of the event loop. Each takes some 0.1 ms, and Node finds all of a second at once. */
export const MOST_TOO_SLOW = 32;

/** Answers errors of the HTTP parser, without Fastify and Nest, and closes their connections. */
export function answerClientErrors(connections: Connections, lines: StrangerLines): (error: ClientError, socket: Socket) => void {
  const pace = new Pace(MOST_TOO_SLOW);
  const answer = answerOne(connections, lines);
  return (error, socket) => {
    if (error.code === TOO_SLOW) pace.begin(() => answer(error, socket));
    else answer(error, socket);
  };
}

const answerOne = (connections: Connections, lines: StrangerLines) => (error: ClientError, socket: Socket) => {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();

  const owedBy = connections.owedBy(socket);
  const whole = owedBy.findLast(({ req }) => req.complete);
  // The client would match this answer to an earlier request that is still running. Send all those answers first, then close the connection.
  if (whole) {
    // Each further read would be another error.
    neverReadOn(socket);
    return void connections.onClosed(whole, () => socket.destroy());
  }
  const [owed] = owedBy;
  // The request was answered before all of it had arrived: the client would match a second answer to its next request.
  if (owed?.headersSent || (!owed && connections.isArriving(socket))) return void socket.destroy();

  const answer = httpAnswerOf(refusalOf(error));
  const requestId = owed ? requestIdOf(owed.req) : randomUUID();
  // A connection that was never used ends in the same way; do not log it.
  if (socket.bytesRead > 0) {
    const { status } = answer;
    countError('unknown', answer.error.status);
    lines.write(status, { msg: 'refused', status, code: error.code, requestId });
  }
  endWith(socket, answer, requestId);
};

/** Answers CONNECT. Node does not treat it as a request: it hands over the socket. From Node 26 on that may be a stream around the socket. */
export const answerConnect =
  (fastify: FastifyInstance, connections: Connections, lines: StrangerLines) => (request: IncomingMessage) => {
    const { socket } = request;
    socket.on('error', () => socket.destroy());
    const requestId = requestIdOf(request);
    const refuse = () => {
      const answer = httpAnswerOf(connectNotServed(fastify, request.url));
      const { status } = answer;
      countError('unknown', answer.error.status);
      lines.write(status, { msg: 'refused', status, code: 'CONNECT', requestId });
      endWith(socket, answer, requestId);
    };
    const before = connections.owedBy(socket).at(-1);
    if (before) connections.onClosed(before, refuse);
    else refuse();
  };

function endWith(socket: Socket, { status, headers, error }: HttpAnswer, requestId: string): void {
  const body = errorEnvelope(error.toBody());
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `content-type: ${JSON_TYPE}`,
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
  socket.destroySoon();
}
