const began = Date.now();
const elapsed = () => `${((Date.now() - began) / 1000).toFixed(1).padStart(5)} s`;

/**
 * One line about what goes on, with the time since the start.
 * @param {string} line
 */
export function report(line) {
  process.stdout.write(`${elapsed()}  ${line}\n`);
}

/**
 * Says what is being done, and now and then that it still is.
 * @template T
 * @param {string} what
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function stage(what, work) {
  report(`${what} ...`);
  const since = Date.now();
  const timer = setInterval(() => report(`${what} ... still at it after ${Math.round((Date.now() - since) / 1000)} s`), 10_000);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/**
 * Shows why something ended: one line, and the output of a command that failed. Only a bug of ours shows its stack.
 * @param {any} error
 */
export function reportFailure(error) {
  if (error.output) process.stderr.write(`${error.output.trimEnd()}\n`);
  const isBug = error instanceof TypeError || error instanceof ReferenceError;
  process.stderr.write(`\n${isBug ? error.stack : error.message}\n`);
}
