import { LARGE_BODY_BYTES, LargeBodies } from './large-bodies';

const MEBIBYTE = 1024 * 1024;
const SMALL = LARGE_BODY_BYTES - 1;

describe(LargeBodies.name, () => {
  let bodies: LargeBodies;
  /** Whether few deliveries at a time are wanted, at each resumption. */
  let resumed: boolean[];
  let isPaused: boolean;

  beforeEach(() => {
    jest.useFakeTimers();
    resumed = [];
    isPaused = false;
    bodies = new LargeBodies({
      pause: () => (isPaused = true),
      resume: () => {
        isPaused = false;
        resumed.push(bodies.areMany);
      },
    });
  });
  afterEach(() => {
    bodies.end();
    jest.useRealTimers();
  });

  const deliver = (count: number, bytes: number) => {
    for (let number = 0; number < count; number++) bodies.delivered(bytes);
  };
  /** @returns bytes that a publisher gets rid of who never stops */
  const takenIn = (seconds: number, bytes: number) => {
    let taken = 0;
    for (let now = 0; now < seconds * 1000; now += 10) {
      if (!isPaused) {
        bodies.delivered(bytes);
        taken += bytes;
      }
      jest.advanceTimersByTime(10);
    }
    return taken;
  };

  it('lets a few of them pass, now and again', () => {
    for (let again = 0; again < 10; again++) {
      deliver(3, MEBIBYTE);
      jest.advanceTimersByTime(1000);
    }
    expect([bodies.areMany, isPaused, resumed]).toEqual([false, false, []]);
  });

  it.each([MEBIBYTE, 5 * MEBIBYTE])('takes 16 MiB a second of bodies of %d bytes', (bytes) => {
    const seconds = 20;
    const rate = takenIn(seconds, bytes) / seconds / MEBIBYTE;
    expect(rate).toBeGreaterThan(15);
    expect(rate).toBeLessThan(17);
  });

  it('pauses for longer when more had been sent already, and asks for few at a time then', () => {
    deliver(20, MEBIBYTE);
    jest.advanceTimersByTime(900);
    expect([isPaused, resumed]).toEqual([true, []]);
    jest.advanceTimersByTime(200);
    expect([isPaused, resumed]).toEqual([false, [true]]);
  });

  it('asks for many again after two seconds in which it was not paused and few came', () => {
    deliver(100, MEBIBYTE);
    jest.advanceTimersByTime(6500);
    expect(resumed).toEqual([true]);
    deliver(3, MEBIBYTE);
    for (let tenths = 0; tenths < 19; tenths++) {
      jest.advanceTimersByTime(100);
      bodies.delivered(LARGE_BODY_BYTES);
    }
    expect(resumed).toEqual([true]);
    jest.advanceTimersByTime(200);
    expect([resumed, bodies.areMany]).toEqual([[true, false], false]);
  });

  describe('at a new channel', () => {
    beforeEach(() => bodies.begin());

    it('asks for few until four small ones have come', () => {
      deliver(3, SMALL);
      expect([bodies.areMany, resumed]).toEqual([true, []]);
      deliver(1, SMALL);
      expect([bodies.areMany, resumed]).toEqual([false, [false]]);
      jest.advanceTimersByTime(10_000);
      expect(resumed).toEqual([false]);
    });

    it('asks for few until nothing large came for two seconds', () => {
      bodies.delivered(MEBIBYTE);
      deliver(20, SMALL);
      jest.advanceTimersByTime(1900);
      expect([bodies.areMany, resumed]).toEqual([true, []]);
      jest.advanceTimersByTime(200);
      expect([bodies.areMany, resumed]).toEqual([false, [false]]);
    });

    it('goes on with the pause of the one before', () => {
      deliver(20, MEBIBYTE);
      bodies.begin();
      deliver(8, SMALL);
      expect([isPaused, bodies.areMany]).toEqual([true, true]);
      jest.advanceTimersByTime(1100);
      expect([isPaused, resumed]).toEqual([false, [true]]);
    });
  });
});
