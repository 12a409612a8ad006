// Measures the delay by the machine itself: bytes to a thread that does nothing else, and back.
import { connect, createServer } from 'node:net';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';

const EVERY_MS = 20;
/** Most samples that are used: they cover more than the longest wait for an answer. */
const LATEST = 20_000;

if (!isMainThread && parentPort) echo(parentPort);

/**
 * Round-trip times of the machine itself.
 * @param {import('node:worker_threads').MessagePort} port
 */
function echo(port) {
  const server = createServer({ noDelay: true }, (socket) => socket.on('error', () => {}).pipe(socket));
  server.listen(0, '127.0.0.1', () => port.postMessage(/** @type {import('node:net').AddressInfo} */ (server.address()).port));
}

/** Starts measuring in a separate thread. It also sees delays of the client's own event loop. */
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
     * The longest delay between two times of `performance.now()`.
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
