import { History, POINTS } from './history';

it('keeps ten minutes of each series, with gaps, oldest first', () => {
  const history = new History();
  for (let tick = 0; tick < POINTS + 5; tick++) history.add(tick % 2 === 0 ? [['even', tick]] : []);
  expect(history.points('even')).toHaveLength(POINTS);
  expect(history.last('even')).toBe(POINTS + 4);
  expect(history.points('even').slice(-3)).toEqual([POINTS + 2, NaN, POINTS + 4]);
  expect(history.points('unknown')).toEqual([]);
});

it('has a bound on its series, and forgets those that ended', () => {
  const history = new History(2);
  history.add([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ]);
  expect([history.refused, history.last('c')]).toEqual([1, NaN]);
  for (let tick = 0; tick < POINTS; tick++) history.add([['a', 1]]);
  history.add([['c', 2]]);
  expect([history.refused, history.last('c'), history.points('b')]).toEqual([0, 2, []]);
});
