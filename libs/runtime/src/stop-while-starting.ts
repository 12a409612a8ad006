// The first import of every program of the image. As process 1 of a container Node ignores a signal without a handler, and the packages of a
// service take hundreds of milliseconds to load. This file imports nothing, so that only the start of Node itself is left.

const onInterrupt = (): never => process.exit(130);
const onTerminate = (): never => process.exit(143);
process.on('SIGINT', onInterrupt);
process.on('SIGTERM', onTerminate);

/** Leaves signals to the handlers that the caller has installed. Until then SIGINT and SIGTERM end the process at once, with 130 and 143. */
export function leaveSignalsToOthers(): void {
  process.off('SIGINT', onInterrupt);
  process.off('SIGTERM', onTerminate);
}
