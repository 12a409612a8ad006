import { milliseconds } from './duration';

describe('a duration', () => {
  it.each([
    ['250ms', 250],
    ['90s', 90_000],
    ['10m', 600_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
  ])('%s is %d ms', (text, expected) => {
    expect(milliseconds(text, ['ms', 's', 'm', 'h', 'd'])).toBe(expected);
  });

  it.each(['', '5', 's', '1.5h', '-1s', '1 h', '1w', '1hh'])('%j is none', (text) => {
    expect(milliseconds(text, ['ms', 's', 'm', 'h', 'd'])).toBeNaN();
  });

  it('has no unit but those that are asked for', () => {
    expect([milliseconds('1d', ['s']), milliseconds('1s', ['s'])]).toEqual([NaN, 1000]);
  });
});
