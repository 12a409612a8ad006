// How long the machine itself lets a client wait: bytes sent to a thread that does nothing else, and back.
import { connect, createServer } from 'node:net';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';

const EVERY_MS = 20;
/** Looked at, at most: longer than any answer is waited for. */
const LATEST = 20_000;

if (!isMainThread && parentPort) echo(parentPort);

/**
 * What the machine itself takes for the way there and back.
 * @param {import('node:worker_threads').MessagePort} port
 */
function echo(port) {
  const server = createServer({ noDelay: true }, (socket) => socket.on('error', () => {}).pipe(socket));
  server.listen(0, '127.0.0.1', () => port.postMessage(/** @type {import('node:net').AddressInfo} */ (server.address()).port));
}

/** Begins to look, in a thread of its own; a wait of the client's own event loop is seen as well. */
export async function watchMachine() {
  const worker = new Worker(new URL(import.meta.url));
  const port = await new Promise((resolve) => worker.once('message', resolve));
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  /** @type {{ from: number, to?: number }[]} */
  const samples = [];
  let answered = 0;
  setInterval(() => {
    samples.push({ from: performance.now() });
    socket.write('x');
    if (samples.length < 2 * LATEST) return;
    samples.splice(0, LATEST);
    answered -= LATEST;
  }, EVERY_MS);
  socket.on('data', ({ length }) => {
    for (let byte = 0; byte < length; byte++) samples[answered++].to = performance.now();
  });
  return {
    /**
     * The longest wait in that time, both as `performance.now()` tells it.
     * @param {number} from
     * @param {number} until
     */
    between(from, until) {
      let longest = 0;
      for (let at = indexBefore(from); at < samples.length && samples[at].from <= until; at++)
        longest = Math.max(longest, (samples[at].to ?? until) - samples[at].from);
      return longest;
    },
  };

  /** @param {number} time */
  function indexBefore(time) {
    let [low, high] = [0, samples.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (samples[middle].from < time) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}
