import type { Socket } from 'node:net';

/**
 * Stops reading a socket, also when it is paused already: Node then emits no event 'pause', and goes on reading when it has begun to since, as it does
 * at 'resume' without a look at the state.
 */
export function stopReading(socket: Socket): void {
  if (socket.isPaused()) socket.emit('pause');
  else socket.pause();
}

/** The same for as long as the socket is open: Node would resume it for a body, and after a write is flushed. */
export function neverReadOn(socket: Socket): void {
  stopReading(socket);
  socket.on('resume', () => stopReading(socket));
}
