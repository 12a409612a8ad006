import type { FastifyReply, FastifyRequest } from 'fastify';
import { Admission } from './admission';
import { Answers } from './answers';
import { CallTurns, MOST_BESIDE_SETTLED, MOST_UNKNOWN } from './call-turns';
import { Hold, type Capacity } from './hold';
import { LargeBodies } from './large-bodies';
import { Places } from './places';
import { Shares } from './shares';

const KIND = 'users.commands';
const MEBIBYTE = 1024 * 1024;

describe(Hold.name, () => {
  let capacity: Capacity;
  let calls: Hold[];

  const holdOf = (apiKey: string) => {
    const hold = new Hold(capacity, KIND, apiKey);
    expect(hold.begin()).toBeUndefined();
    return hold;
  };
  const call = (apiKey: string) => {
    const hold = holdOf(apiKey);
    const work = jest.fn();
    hold.whenTurn(5000, work);
    return { hold, work };
  };
  const answer = (hold: Hold) => {
    hold.answered(10, true);
    hold.close();
  };

  /** A call of a settled key and as many of two new keys as may be at work beside it. */
  beforeEach(() => {
    jest.useFakeTimers();
    capacity = {
      places: new Places(1000),
      bodies: new Shares(MEBIBYTE),
      smallBodies: new Shares(MEBIBYTE),
      answers: new Answers(128 * MEBIBYTE),
      turns: new CallTurns(),
      largeBodies: new LargeBodies(),
    };
    capacity.places.answered('settled');
    const newKeys = Array.from({ length: MOST_BESIDE_SETTLED }, (_, number) => ['new', 'other new'][number % 2]);
    calls = ['settled', ...newKeys].map((apiKey) => call(apiKey).hold);
  });
  afterEach(() => void jest.useRealTimers());

  it('makes no key settled whose call never began: its client left, or its time was over', () => {
    const left = call('left');
    const late = call('late');
    left.hold.close();
    jest.advanceTimersByTime(5002);
    expect([left, late].map(({ work }) => work.mock.calls.length)).toEqual([0, 1]);
    calls.concat(late.hold).forEach(answer);
    jest.advanceTimersByTime(31_000);
    expect(['new', 'left', 'late'].map((apiKey) => capacity.places.isSettled(apiKey))).toEqual([true, false, false]);
  });

  it('returns no turn of a call that had none', () => {
    const late = call('late');
    jest.advanceTimersByTime(5002);
    answer(late.hold);
    const next = call('next');
    expect(next.work).not.toHaveBeenCalled();
    answer(calls[1]);
    expect(next.work).toHaveBeenCalledTimes(1);
    // Its timer has ended with its wait.
    jest.advanceTimersByTime(5002);
    expect([next.work.mock.calls.length, jest.getTimerCount()]).toEqual([1, 0]);
  });

  it('begins nothing for a client that left before the end of its body was handled', () => {
    const hold = holdOf('settled');
    hold.close();
    const work = jest.fn();
    hold.whenTurn(5000, work);
    expect(work).not.toHaveBeenCalled();
  });

  describe('a query', () => {
    const READS = 'notifications.queries';
    const page = (operation?: string) => {
      const hold = new Hold(capacity, READS, 'reader', 0, operation);
      expect(hold.begin()).toBeUndefined();
      const work = jest.fn();
      hold.whenTurn(5000, work);
      return { hold, work };
    };
    const pages = (count: number) => Array.from({ length: count }, () => page());
    const isBegun = ({ work }: ReturnType<typeof page>) => work.mock.calls.length > 0 && work.mock.calls[0][0] === undefined;
    const placesLeft = () => {
      let count = 0;
      while (!capacity.places.take(READS, 'reader')) count++;
      for (let place = 0; place < count; place++) capacity.places.give(READS, 'reader');
      return count;
    };

    it('is refused in its turn when answers of its key have shown meanwhile that there is no room for its own', () => {
      const all = placesLeft();
      const answered = new Set<ReturnType<typeof page>>();
      const flood = pages(100);
      expect(flood.filter(isBegun)).toHaveLength(MOST_UNKNOWN.ofKey);
      // Nobody reads the answers.
      const next = () => flood.find((one) => isBegun(one) && !answered.has(one));
      for (let one = next(); one; one = next()) {
        one.hold.answered(4 * MEBIBYTE, true);
        answered.add(one);
      }
      expect(answered.size).toBeGreaterThan(MOST_UNKNOWN.ofKey);
      expect(answered.size).toBeLessThan(128 / 4);
      const refused = flood.filter((one) => !answered.has(one));
      expect(new Set(refused.map(({ work }) => work.mock.calls[0][0] as unknown))).toEqual(new Set(['waiting_share']));
      expect(placesLeft()).toBe(all);
      for (const { hold } of flood) hold.close();
      expect(page().work).toHaveBeenCalledWith(undefined);
    });

    it('waits for the large answers of its own operation only', () => {
      answer(page('one').hold);
      const first = page('other');
      first.hold.answered(4 * MEBIBYTE, true);
      first.hold.close();
      const large = Array.from({ length: 20 }, () => page('other'));
      expect(large.filter(isBegun)).toHaveLength(12);
      expect(isBegun(page('one'))).toBe(true);
    });

    it.each([
      ['by the share of its key', 'while this one gets results', true, 'in_flight_share'],
      ['as if nothing worked', 'while there are none', false, undefined],
    ])('without a turn in time is refused %s %s', (_refused, _while, isResult, limit) => {
      const all = placesLeft();
      const flood = pages(MOST_UNKNOWN.ofKey + 2);
      jest.advanceTimersByTime(1000);
      flood[0].hold.answered(10, isResult);
      jest.advanceTimersByTime(4002);
      expect(flood.at(-2)!.work.mock.calls).toEqual([[undefined]]);
      expect(flood.at(-1)!.work.mock.calls).toEqual([[limit]]);
      flood.filter(isBegun).forEach(({ hold }) => answer(hold));
      expect(placesLeft()).toBe(all);
    });
  });

  describe('a large body', () => {
    const turnOf = (hold: Hold) => {
      const work = jest.fn();
      hold.whenTurnOfBody(MEBIBYTE, 5000, work);
      return { hold, work };
    };
    const large = () => turnOf(new Hold(capacity, KIND, 'large'));
    /** Time in which small calls of another key come. */
    const besideSmallCalls = (ms: number) => {
      for (let passed = 0; passed < ms; passed += 500) {
        capacity.largeBodies.smallCall('small');
        jest.advanceTimersByTime(Math.min(500, ms - passed));
      }
    };

    it('is refused when its turn does not come in time, by its share beside others of its key, and never begins when its client left', () => {
      const small = holdOf('small');
      const [first, left, late] = [large(), large(), large()];
      left.hold.close();
      besideSmallCalls(5002);
      expect([first, left, late].map(({ work }) => work.mock.calls)).toEqual([[[]], [], [['share']]]);
      const begun = large();
      answer(first.hold);
      answer(small);
      // Its rest, and the next look.
      jest.advanceTimersByTime(1101);
      expect(begun.work).toHaveBeenCalledWith();
    });

    it('is refused by the limit of all when others take the turns, and its key has only this one', () => {
      const of = (apiKey: string) => turnOf(new Hold(capacity, KIND, apiKey));
      const turns = ['a', 'b'].map(of);
      const [guest, last] = ['guest', 'a'].map(of);
      holdOf('small');
      besideSmallCalls(5002);
      expect(turns.map(({ work }) => work.mock.calls)).toEqual([[[]], [[]]]);
      expect([guest, last].map(({ work }) => work.mock.calls)).toEqual([[['all']], [['share']]]);
    });

    it('gives its room when its call is answered or refused, and not when the client has read that', () => {
      holdOf('small');
      const [answered, refused, last] = [large(), large(), large()];
      jest.advanceTimersByTime(10);
      answered.hold.begin();
      answered.hold.answered(10, true);
      jest.advanceTimersByTime(20);
      expect([refused, last].map(({ work }) => work.mock.calls)).toEqual([[[]], []]);
      capacity.places = new Places(0);
      expect(refused.hold.begin()).toBe('in_flight');
      jest.advanceTimersByTime(20);
      expect(last.work).toHaveBeenCalledWith();
    });

    it('is no small call when its client has left', () => {
      const { hold, work } = large();
      jest.advanceTimersByTime(10);
      expect(work).toHaveBeenCalledWith();
      const smallCall = jest.spyOn(capacity.largeBodies, 'smallCall');
      hold.close();
      hold.begin();
      expect(smallCall).not.toHaveBeenCalled();
    });
  });

  it('gives an exception at the start of a waiting call to this call, not to the one that ends', () => {
    const unused = {} as never;
    const limits = { maxInFlight: 1, maxBytesArriving: 1, maxSmallBytesArriving: 1, maxBytesWaiting: 1, requestTimeoutMs: 1 };
    const admission = new Admission(unused, unused, unused, unused, limits, unused);
    const hold = new Hold(capacity, KIND, 'waiting');
    const failure = new Error('The answer cannot be sent.');
    const errors: (Error | undefined)[] = [];
    admission.enter({ hold, caller: { timeoutMs: 5000 } } as FastifyRequest, {} as FastifyReply, (error) => {
      errors.push(error);
      if (!error) throw failure;
    });
    expect(errors).toEqual([]);
    expect(() => answer(calls[1])).not.toThrow();
    expect(errors).toEqual([undefined, failure]);
  });
});
