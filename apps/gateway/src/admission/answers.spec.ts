import { Answers } from './answers';
import { CallTurns } from './call-turns';
import { Hold } from './hold';
import { KINDS } from './kinds';
import { LargeBodies } from './large-bodies';
import { Places } from './places';
import { Shares } from './shares';

const MEBIBYTE = 1024 * 1024;
const READS = KINDS.find((kind) => kind.endsWith('queries'))!;

describe('the expected size of an answer', () => {
  const capacity = {
    places: new Places(1000),
    bodies: new Shares(MEBIBYTE),
    smallBodies: new Shares(MEBIBYTE),
    answers: new Answers(128 * MEBIBYTE),
    turns: new CallTurns(),
    largeBodies: new LargeBodies(),
  };

  const answer = (bytes: number, isResult: boolean) => {
    const hold = new Hold(capacity, READS, 'key');
    expect(hold.begin()).toBeUndefined();
    hold.whenTurn(5000, () => undefined);
    hold.answered(bytes, isResult);
    hold.close();
  };

  /** Calls that the key may have in flight at once. */
  const room = () => {
    const holds = Array.from({ length: 400 }, () => new Hold(capacity, READS, 'key'));
    const begun = holds.filter((hold) => hold.begin() === undefined);
    for (const hold of begun) {
      hold.whenTurn(5000, () => undefined);
      hold.answered(0, false);
      hold.close();
    }
    return begun.length;
  };

  it('is that of the results of the key, and no error makes it smaller', () => {
    answer(4 * MEBIBYTE, true);
    const few = room();
    expect(few).toBeLessThan(32);
    for (let times = 0; times < 100; times++) answer(100, false);
    expect(room()).toBe(few);
    for (let times = 0; times < 100; times++) answer(100, true);
    expect(room()).toBe(400);
  });
});
