import { IncomingMessage, type ServerResponse } from 'node:http';

declare module 'node:http' {
  interface IncomingMessage {
    /** The API key, when the caller has proved it. */
    provedKey?: string;
  }
}

/** Pieces of at least this size are passed on. Smaller ones are put together, because each Buffer takes some 200 bytes more than its content. */
const ENOUGH_BYTES = 16 * 1024;

/**
 * A request whose body may arrive in pieces of any size, chunks of one byte included: its memory is bounded by its bytes.
 *
 * @param arrived called for each piece after the first one
 */
export function requestsInPieces(arrived: (request: IncomingMessage, bytes: number) => void): typeof IncomingMessage {
  return class extends IncomingMessage {
    override provedKey?: string = undefined;
    private collected?: Buffer = undefined;
    private bytes = 0;
    private hasBegun = false;

    /** Node's parser calls it for each piece, and with null at the end. */
    override push(piece: Buffer | null): boolean {
      if (piece === null) {
        this.passOn();
        // Nobody reads them, and the request may wait with 16 KiB of them.
        if (this.rawTrailers.length > 0) [this.rawTrailers, this.trailers] = [[], {}];
        return super.push(null);
      }
      if (this.hasBegun) arrived(this, piece.length);
      this.hasBegun = true;
      this.collect(piece);
      return this.bytes < ENOUGH_BYTES || this.passOn();
    }

    private collect(piece: Buffer): void {
      const bytes = this.bytes + piece.length;
      if (!this.collected) this.collected = piece;
      else {
        if (bytes > this.collected.length)
          this.collected = enlarged(this.collected, this.bytes, Math.max(bytes, Math.min(2 * bytes, ENOUGH_BYTES)));
        piece.copy(this.collected, this.bytes);
      }
      this.bytes = bytes;
    }

    private passOn(): boolean {
      const { collected, bytes } = this;
      if (!collected) return true;
      this.collected = undefined;
      this.bytes = 0;
      return super.push(collected.subarray(0, bytes));
    }
  };
}

/** Reads and drops the rest of a body whose request is answered already, also behind an answer that ends the connection. */
export function dropRestAfter(response: ServerResponse): void {
  const { req: request } = response;
  // Before Node's own listener, which leaves a request alone that is being read.
  response.prependOnceListener('finish', () => {
    if (request.complete) return;
    endBehindRest(response);
    if (request.headers['transfer-encoding'] === undefined) return;
    // Node would do it itself, and would not pass the pieces on to be counted.
    request.read(0);
    request.resume();
  });
}

/** Node would close the connection at once. That resets a client that is still sending, and a proxy then answers 502 in place of the refusal. */
function endBehindRest(response: ServerResponse): void {
  const { req: request } = response;
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    request.once('close', () => socket.destroy());
  };
  // Node has called it by then, if the answer was the last one.
  response.once('close', () => Reflect.deleteProperty(socket, 'destroySoon'));
}

function enlarged(buffer: Buffer, bytes: number, size: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(size);
  buffer.copy(larger, 0, 0, bytes);
  return larger;
}
