import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { MOST_UNPAID, MOST_UNPROVED, PIECES_PER_MS, SmallPieces } from './small-pieces';

const SECOND = 1000 * PIECES_PER_MS;

describe(SmallPieces.name, () => {
  let pieces: SmallPieces;
  const warn = jest.fn();
  const close = jest.fn((socket: Socket) => void socket.destroy());

  beforeEach(() => {
    jest.useFakeTimers();
    warn.mockClear();
    close.mockClear();
    pieces = new SmallPieces({ warn } as never, { arrived: () => undefined }, close);
  });
  afterEach(() => jest.useRealTimers());

  const WANTED = { complete: false, readableLength: 0, readableHighWaterMark: 16 * 1024 };
  const requestOf = (provedKey?: string) =>
    ({ ...WANTED, socket: new Socket().resume(), provedKey }) as unknown as IncomingMessage;
  const arrive = (request: IncomingMessage, count: number, bytes = 1) => {
    for (let piece = 0; piece < count; piece++) pieces.arrived(request, bytes);
  };
  const isRead = ({ socket }: IncomingMessage) => !socket.isPaused();
  /** Until the queue has begun its first turn. */
  const joined = () => jest.advanceTimersByTimeAsync(0);

  it('reads on while pieces are few or large', async () => {
    const request = requestOf('key');
    arrive(request, MOST_UNPAID - 1);
    arrive(request, 10 * MOST_UNPAID, 256);
    await joined();
    expect(isRead(request)).toBe(true);
  });

  it('reads a connection on when the time of its small pieces is over, of any number of requests', async () => {
    const request = requestOf('key');
    arrive(request, MOST_UNPAID - 1);
    arrive({ ...request, provedKey: 'key' } as IncomingMessage, SECOND - MOST_UNPAID + 1);
    expect(isRead(request)).toBe(false);
    // As Node does when a handler wants the body.
    request.socket.resume();
    await jest.advanceTimersByTimeAsync(999);
    expect(isRead(request)).toBe(false);
    await jest.advanceTimersByTimeAsync(2);
    expect(isRead(request)).toBe(true);
    arrive(request, MOST_UNPAID - 1);
    expect(isRead(request)).toBe(true);
  });

  it('does not read on for a body that nobody wants yet', async () => {
    const request = { ...requestOf('key'), readableLength: WANTED.readableHighWaterMark } as IncomingMessage;
    arrive(request, MOST_UNPAID);
    await jest.advanceTimersByTimeAsync(1000);
    expect(isRead(request)).toBe(false);
  });

  it('lets API keys take turns, and all unproved callers have one', async () => {
    const many = Array.from({ length: 20 }, () => requestOf('key'));
    const strangers = Array.from({ length: 20 }, () => requestOf());
    for (const request of [...many, ...strangers]) arrive(request, SECOND);
    await joined();
    const other = requestOf('other');
    arrive(other, MOST_UNPAID);
    await jest.advanceTimersByTimeAsync(3010);
    expect(isRead(other)).toBe(true);
    await jest.advanceTimersByTimeAsync(2000);
    expect([many.filter(isRead).length, strangers.filter(isRead).length]).toEqual([3, 2]);
  });

  it('gives no time to connections that have ended', async () => {
    const gone = Array.from({ length: 20 }, () => requestOf('key'));
    const last = requestOf('key');
    for (const request of gone) arrive(request, SECOND);
    arrive(last, MOST_UNPAID);
    gone.forEach(({ socket }) => socket.destroy());
    await jest.advanceTimersByTimeAsync(200);
    expect(isRead(last)).toBe(true);
  });

  it('gives no turn to connections that end while they wait, beside another key', async () => {
    const many = Array.from({ length: 3 }, () => requestOf('key'));
    for (const request of many) arrive(request, SECOND);
    await joined();
    const gone = Array.from({ length: 20 }, () => requestOf());
    const last = requestOf();
    for (const request of [...gone, last]) arrive(request, MOST_UNPAID);
    await joined();
    gone.forEach(({ socket }) => socket.destroy());
    // The turn that has begun, the next one of the key, and that of the last one.
    await jest.advanceTimersByTimeAsync(2010);
    expect([isRead(many[2]), isRead(last)]).toEqual([false, true]);
  });

  it('closes unproved connections above those that may wait, and lets others wait when some have ended', async () => {
    const first = requestOf('key');
    arrive(first, SECOND);
    await joined();
    const wait = async (count: number, provedKey?: string) => {
      const requests = Array.from({ length: count }, () => requestOf(provedKey));
      for (const request of requests) arrive(request, MOST_UNPAID);
      await joined();
      return requests;
    };
    const waiting = await wait(MOST_UNPROVED);
    await wait(1, 'key');
    expect(close).not.toHaveBeenCalled();
    const [further] = await wait(1);
    expect(close.mock.calls).toEqual([[further.socket]]);
    waiting.slice(0, 2).forEach(({ socket }) => socket.destroy());
    await joined();
    await wait(3);
    expect(close).toHaveBeenCalledTimes(2);
    // One begins, and leaves its place.
    await jest.advanceTimersByTimeAsync(1010);
    await wait(1);
    expect(close).toHaveBeenCalledTimes(2);
  });

  it('names the keys that waited for longer than a second, with one line a second', async () => {
    for (const request of [requestOf('key'), requestOf('other'), requestOf()]) arrive(request, 0.4 * SECOND);
    await jest.advanceTimersByTimeAsync(3000);
    expect(warn.mock.calls).toEqual([[expect.objectContaining({ pauses: 1, apiKeys: [] })]]);
    for (let request = 0; request < 3; request++) arrive(requestOf('key'), 0.6 * SECOND);
    await jest.advanceTimersByTimeAsync(5000);
    expect(warn.mock.calls.slice(1)).toEqual([[expect.objectContaining({ pauses: 2, apiKeys: ['key'] })]]);
  });
});
