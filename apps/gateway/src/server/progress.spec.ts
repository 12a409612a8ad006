import type { Socket } from 'node:net';
import { Progress } from './progress';

const LIMITS = { unreadTimeoutMs: 30_000, leastBytesPerSecond: 1000 };

describe(Progress.name, () => {
  const handle = { bytesWritten: 0, writeQueueSize: 0 };
  const socket = { writableLength: 0, _handle: handle };
  let progress: Progress;
  const send = (bytes: number) => {
    handle.bytesWritten += bytes;
    handle.writeQueueSize += bytes;
    socket.writableLength += bytes;
  };
  const take = (bytes: number) => {
    handle.writeQueueSize -= bytes;
    if (handle.writeQueueSize === 0) socket.writableLength = 0;
  };
  const isEnough = (second: number) => progress.isEnough(second * 1000, LIMITS);

  beforeEach(() => {
    Object.assign(handle, { bytesWritten: 0, writeQueueSize: 0 });
    socket.writableLength = 0;
    progress = new Progress(socket as unknown as Socket);
  });

  it('is not required while nothing is sent', () => {
    expect([isEnough(0), isEnough(3600), progress.isWaiting]).toEqual([true, true, false]);
  });

  it('is required within the timeout, counted from the last progress', () => {
    send(1_000_000);
    expect([isEnough(0), isEnough(29), progress.isWaiting]).toEqual([true, true, true]);
    take(100_000);
    expect([isEnough(30), isEnough(59), isEnough(60)]).toEqual([true, true, false]);
  });

  it('must reach the minimum rate after the timeout, on average', () => {
    send(1_000_000);
    const seconds = Array.from({ length: 100 }, (_, second) => second);
    const lasted = seconds.findIndex((second) => {
      take(second > 0 ? 500 : 0);
      return !isEnough(second);
    });
    expect(lasted).toBe(61);
  });

  it('is enough at the minimum rate, and starts again once everything was read', () => {
    send(200_000);
    for (let second = 0; second < 200; second++) {
      expect(isEnough(second)).toBe(true);
      take(1000);
    }
    expect([isEnough(200), progress.isWaiting]).toEqual([true, false]);
    send(1000);
    expect([isEnough(1000), isEnough(1029), isEnough(1030)]).toEqual([true, true, false]);
  });
});
